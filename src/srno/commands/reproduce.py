"""srno reproduce"""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cyclopts import App, Parameter

from srno.commands.options import EvaluationFlags, ProtocolFlags, find_data, prepare_computing
from srno.commands.output import print_message, save, show, watch
from srno.errors import SRNOError
from srno.evaluation.protocols import LRSource, Protocol, Scale, named_protocol, parse_scales
from srno.reproduce.paper_figures import FIGURES, Figure, parse_rows

if TYPE_CHECKING:
    from srno.reproduce.paper_tables import TableInputs
    from srno.upscaling.upscaler import Upscaler

reproduce = App(name="reproduce", help="Reproduce the paper's tables and figures from checkpoints and pictures.")

TABLES = {
    "table1": "PSNR on the DIV2K validation set.",
    "table2": "PSNR on the benchmark sets.",
    "suppl": "Random and sequential sampling.",
}
Folders: TypeAlias = Annotated[list[Path] | None, Parameter(negative_iterable="")]


@dataclass(frozen=True, kw_only=True)
class TableProtocolFlags(ProtocolFlags):
    """Flags of the evaluation protocol; each table has its own unless given."""

    protocol: str = "paper"
    """paper (div2k for DIV2K, benchmark for the other sets), benchmark or div2k; the flags below change its rules."""

    def of_table(self, name: str) -> Protocol:
        """The protocol of a table whose own is `name`."""
        return replace(self, protocol=name if self.protocol == "paper" else self.protocol).resolve()


@dataclass(frozen=True, kw_only=True)
class ScoringFlags:
    """Flags of everything that scores checkpoints on sets."""

    data: Folders = None
    """Folder of sets, found by their names (DIV2K/DIV2K_valid_HR, Set5, Set14, B100, Urban100); others are added to the
    table, but never DIV2K's training pictures."""
    checkpoints: Path | None = None
    """Folder of checkpoints (.safetensors, .pth) and training runs, matched to rows by their model config; a name that
    ends in -s means sequential sampling. The shipped models unless given."""
    scales: str | None = None
    """Factors; those of the paper unless given."""
    threads: int | None = None
    """CPU threads; all cores unless given."""
    cache: bool = True
    """Use cached scores and cache new ones."""


@dataclass(frozen=True, kw_only=True)
class TableFlags(ScoringFlags):
    """Flags that all tables share."""

    out: Path | None = None
    """Save as Markdown and JSON: OUT.md …, or into OUT if that is a folder."""
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False
    """Print JSON."""


@dataclass(frozen=True, kw_only=True)
class AnalysisFlags:
    """Flags of the figures that look into a model."""

    model: str = "default"
    """A shipped model or a checkpoint of SRNO."""
    lr: LRSource = "standard"
    """Low-resolution pictures: matlab, pillow, ready (LR_bicubic/X2 … beside HR), or standard, which is matlab at ×2 ×3
    ×4 and pillow elsewhere."""
    cell_clip: bool = True
    """Above ×4, keep the cell of ×4."""
    max_pixels: int | None = None
    """Cut larger pictures to this many pixels around their centre."""
    memory: str | None = None
    """Memory budget, such as 2G; half of the free memory unless given."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    threads: int | None = None
    """CPU threads; all cores unless given."""

    def protocol(self) -> Protocol:
        """How low-resolution pictures are made; nothing is scored."""
        return named_protocol("benchmark", lr=self.lr, cell_clip=self.cell_clip, max_pixels=self.max_pixels)

    def upscaler(self) -> "Upscaler":
        """The model in fp32, which ranks need."""
        from srno.upscaling.upscaler import Upscaler

        prepare_computing(self.threads)
        return Upscaler(model=self.model, memory=self.memory, device=self.device, precision="fp32", integral="exact")


TableRules: TypeAlias = Annotated[TableProtocolFlags, Parameter(name="*")]
Rules: TypeAlias = Annotated[ProtocolFlags, Parameter(name="*")]
Evaluating: TypeAlias = Annotated[EvaluationFlags, Parameter(name="*")]
Analysing: TypeAlias = Annotated[AnalysisFlags, Parameter(name="*")]
Tabling: TypeAlias = Annotated[TableFlags, Parameter(name="*")]
Scoring: TypeAlias = Annotated[ScoringFlags, Parameter(name="*")]

PAPER_RULES, BENCHMARK_RULES = TableProtocolFlags(), ProtocolFlags()
EXACT, ANALYSIS, TABLE, SCORING = EvaluationFlags(), AnalysisFlags(), TableFlags(), ScoringFlags()


def _register_table(name: str, text: str) -> None:
    def table(*, flags: Tabling = TABLE, protocol: TableRules = PAPER_RULES, upscaler: Evaluating = EXACT) -> None:
        """Print a table of the paper with its numbers beside ours, and the commands that fill the gaps."""
        tables = ("suppl-div2k", "suppl-benchmark") if name == "suppl" else (name,)
        _print_tables(name, tables, flags, _inputs(flags, protocol, upscaler))

    reproduce.command(table, name=name, help=text)


for _name, _text in TABLES.items():
    _register_table(_name, _text)


@reproduce.command(help="Parameters and FLOPs, counted.")
def table3(*, out: Path | None = None) -> None:
    """Count parameters and FLOPs of the models in the paper's table 3 and print them beside its numbers.

    Parameters
    ----------
    out
        Save as Markdown: OUT.md, or into OUT if that is a folder.
    """
    from srno.reproduce.paper_tables import reproduce_costs
    from srno.reproduce.published import load_published

    text = reproduce_costs(load_published())
    show(text)
    _save(out, "table3", {"md": text})


@reproduce.command(help="Ablations and running time on Set14.")
def table4(
    *,
    bench: Path | None = None,
    machine: str | None = None,
    flags: Tabling = TABLE,
    protocol: TableRules = PAPER_RULES,
    upscaler: Evaluating = EXACT,
) -> None:
    """Print the paper's table of ablations and running times with its numbers beside ours.

    Parameters
    ----------
    bench
        Running times saved by `srno bench --out`.
    machine
        Name of the machine that --bench was measured on, if the file does not have it.
    """
    from srno.reproduce.bench_file import read_bench

    if machine and not bench:
        raise SRNOError(f"--machine {machine!r} has no effect without --bench")
    times = read_bench(bench, machine) if bench else None
    _print_tables("table4", ("table4",), flags, replace(_inputs(flags, protocol, upscaler), times=times))


def _inputs(flags: ScoringFlags, protocol: TableProtocolFlags, upscaler: EvaluationFlags) -> "TableInputs":
    from srno.files import cache_folder
    from srno.reproduce.checkpoint_rows import find_checkpoints
    from srno.reproduce.paper_tables import TableInputs
    from srno.reproduce.published import load_published
    from srno.reproduce.table_sets import find_table_sets

    prepare_computing(flags.threads)
    found, unreadable = find_checkpoints(flags.checkpoints)
    sets = find_table_sets(flags.data or [])
    for reason in (*unreadable, *sets.left_out):
        print_message(f"left out {reason}")
    return TableInputs(
        published=load_published(),
        found=found,
        sets=sets,
        upscaler=upscaler,
        watch=watch,
        protocol=protocol.of_table,
        scales=parse_scales(flags.scales) if flags.scales else None,
        cache=cache_folder("scores") if flags.cache else None,
    )


def _print_tables(name: str, tables: tuple[str, ...], flags: TableFlags, inputs: "TableInputs") -> None:
    from srno.reproduce.paper_tables import fill_table, table_dict, table_markdown

    filled = [fill_table(each, inputs) for each in tables]
    text = "\n".join(table_markdown(each) for each in filled)
    content = _json([table_dict(each) for each in filled])
    if flags.as_json:
        sys.stdout.write(content)
    else:
        show(text)
    _save(flags.out, name, {"md": text, "json": content})


def _register_figure(name: str, figure: Figure) -> None:
    def draw(
        *,
        picture: Annotated[list[Path], Parameter(negative_iterable="")],
        model: Annotated[list[str] | None, Parameter(negative_iterable="")] = None,
        out: Path = Path(f"{name}.png"),
        scales: str = ",".join(figure.scales),
        boxes: str | None = None,
        protocol: Rules = BENCHMARK_RULES,
        threads: int | None = None,
        upscaler: Evaluating = EXACT,
    ) -> None:
        """Draw a visual comparison of the paper from given pictures and checkpoints.

        Parameters
        ----------
        picture
            A high-resolution picture; one for each scale, or one for all.
        model
            NAME=FILE, with the name to print in the figure; may be given several times. Bicubic is added if the paper
            shows it.
        out
            The PNG to write.
        scales
            Factors, a row each; a factor may be given several times.
        boxes
            Boxes to enlarge, LEFT,TOP,WIDTH,HEIGHT in pixels of the truth; one for each scale, separated by
            semicolons, or one for all. Where the errors are largest unless given.
        threads
            CPU threads; all cores unless given.
        """
        from srno.evaluation.datasets import SetPicture
        from srno.evaluation.methods import find_methods
        from srno.reproduce.exhibit import parse_boxes
        from srno.reproduce.panel import save_panel
        from srno.reproduce.paper_figures import draw_figure

        prepare_computing(threads)
        names = [*(["Bicubic=bicubic"] if "Bicubic" in figure.methods else []), *(model or [])]
        if not names:
            raise SRNOError(f"give models to draw, such as --model '{figure.methods[-1]}=FILE'")
        order = {each: index for index, each in enumerate(figure.methods)}
        methods = sorted(find_methods(names, upscaler), key=lambda method: order.get(method.name, len(order)))
        missing = [each for each in figure.methods if each not in {method.name for method in methods}]
        if missing:
            print_message(f"the paper also shows {', '.join(missing)}; add each with --model 'NAME=FILE'")
        drawn = draw_figure(
            figure,
            [(method.name, method.upscale) for method in methods],
            [SetPicture(path.name, path) for path in picture],
            parse_rows(scales),
            protocol.resolve(),
            parse_boxes(boxes) if boxes else (),
        )
        save_panel(drawn, out)
        print_message(f"drew {out}")

    reproduce.command(draw, name=name, help=figure.title)


for _name, _figure in FIGURES.items():
    _register_figure(_name, _figure)


@reproduce.command(help="Basis functions: columns of Q, K and V, and z before and after each layer.")
def fig_basis(
    *,
    picture: Path,
    scale: str = "4",
    channels: str | None = None,
    count: int | None = None,
    out: Path = Path("fig-basis.png"),
    analysis: Analysing = ANALYSIS,
) -> None:
    """Draw columns of Q, K and V of every layer and channels of z before and after it, as maps over the output.

    Parameters
    ----------
    picture
        A high-resolution picture.
    scale
        The factor by which it is made small and enlarged again.
    channels
        Channels to draw, such as 3,17,29,40; those with the largest energy unless given.
    count
        Number of channels to choose, if they are not given; 4 by default.
    out
        The PNG to write.
    """
    from srno.evaluation.datasets import SetPicture
    from srno.reproduce.basis_figure import DEFAULT_COUNT, draw_basis, parse_channels
    from srno.reproduce.plotting import save_figure

    if count is not None and (count < 1 or channels):
        reason = f"has no effect with --channels {channels}" if channels else "is too small; give at least 1"
        raise SRNOError(f"--count {count} {reason}")
    chosen = parse_channels(channels) if channels else ()
    figure = draw_basis(
        analysis.upscaler(),
        SetPicture(picture.name, picture),
        Scale.parse(scale),
        analysis.protocol(),
        channels=chosen,
        count=count or DEFAULT_COUNT,
    )
    save_figure(figure, out)
    print_message(f"drew {out}")


@reproduce.command(help="Ranks of z_0 … z_T and of Q, K and V over a set.")
def fig_rank(
    *,
    data: Annotated[list[Path], Parameter(negative_iterable="")],
    scales: str = "2,3,4,6,8",
    out: Path = Path("fig-rank.png"),
    analysis: Analysing = ANALYSIS,
) -> None:
    """Measure and draw singular spectra, effective ranks and numerical ranks of z, Q, K and V on whole pictures.

    Parameters
    ----------
    data
        A set such as Set5; may be given several times.
    scales
        Factors.
    out
        The PNG to write; OUT.md and OUT.json have the numbers.
    """
    from srno.reproduce.rank_figure import draw_ranks, ranks_dict, ranks_markdown
    from srno.reproduce.summarised import summarise_set

    upscaler, rules, sets = analysis.upscaler(), analysis.protocol(), find_data(data)
    with watch("fig-rank") as report:
        found = list(summarise_set(upscaler, sets, parse_scales(scales), rules, report))
    title = f"Ranks on {', '.join(each.name for each in sets)}, {upscaler.name}"
    _finish(out, draw_ranks(found, title), ranks_markdown(found, title, rules), ranks_dict(found, rules))


@reproduce.command(help="The kernel matrices M, and how far they move between pictures, scales and halves.")
def fig_kernel(
    *,
    data: Annotated[list[Path], Parameter(negative_iterable="")],
    scale: str = "4",
    scales: str = "2,3,4,6,8",
    out: Path = Path("fig-kernel.png"),
    analysis: Analysing = ANALYSIS,
) -> None:
    """Draw the matrices M of each layer for each picture, and measure their distances.

    Parameters
    ----------
    data
        A set such as Set5; may be given several times.
    scale
        The factor by which the pictures are made small, and at which M is drawn.
    scales
        Factors by which the same low-resolution pictures are enlarged.
    out
        The PNG to write; OUT.md and OUT.json have the numbers.
    """
    from srno.reproduce.kernel_figure import draw_kernels, kernels_dict, kernels_markdown, study_kernels

    upscaler, rules, sets = analysis.upscaler(), analysis.protocol(), find_data(data)
    with watch("fig-kernel") as report:
        study = study_kernels(upscaler, sets, Scale.parse(scale), parse_scales(scales), rules, report)
    title = f"Kernel matrices on {', '.join(each.name for each in sets)} ×{scale}, {upscaler.name}"
    _finish(out, draw_kernels(study, title), kernels_markdown(study, title, rules), kernels_dict(study, rules))


@reproduce.command(help="PSNR against the number of supervision points in training.")
def fig_samples(
    *,
    preset: str = "edsr-baseline",
    sides: str = "48,64,96,128",
    out: Path = Path("fig-samples.png"),
    flags: Scoring = SCORING,
    protocol: TableRules = PAPER_RULES,
    upscaler: Evaluating = EXACT,
) -> None:
    """Draw the PSNR above LTE's of SRNO trained with different numbers of points, and print what is missing.

    Parameters
    ----------
    preset
        SRNO and encoder: edsr-baseline, rdn or light.
    sides
        Roots of the numbers of points; the low-resolution patches are as large.
    out
        The PNG to write, if LTE and another model are there; OUT.md and OUT.json have the numbers.
    """
    from srno.reproduce.sample_figure import draw_samples, sample_rows, samples_dict, samples_markdown, study_samples

    rows = sample_rows(preset, _whole_numbers("--sides", sides))
    inputs, scales = _inputs(flags, protocol, upscaler), parse_scales(flags.scales or "2,3,4,6,8")
    study = study_samples(rows, scales, inputs)
    title = f"Samples and PSNR on {', '.join(each.name for each in inputs.sets.sets) or 'no set'}"
    text = samples_markdown(study, scales, title)
    if study.complete:
        _finish(out, draw_samples(study, scales, title), text, samples_dict(study))
    else:
        show(text)


@reproduce.command(help="Random against sequential supervision points.")
def fig_patterns(
    *, picture: Path, side: int = 32, scale: float = 3.7, seed: int = 6, out: Path = Path("fig-patterns.png")
) -> None:
    """Draw the supervision points of a training sample: random, sequential, and sorted as in the published code.

    Parameters
    ----------
    picture
        A picture to take the crop of.
    side
        Side of the low-resolution patch; there are as many points as it has pixels.
    scale
        The factor of the sample.
    seed
        Seed of the crop and of the points.
    out
        The PNG to write.
    """
    from srno.evaluation.datasets import read_rgb
    from srno.reproduce.pattern_figure import draw_patterns
    from srno.reproduce.plotting import save_figure

    save_figure(draw_patterns(read_rgb(picture), side=side, scale=scale, seed=seed), out)
    print_message(f"drew {out}")


reproduce.command(
    "srno.commands.miniature:miniature",
    name="miniature",
    help="The paper's comparison at small scale: all decoders and ablations trained alike.",
)


def _whole_numbers(flag: str, text: str) -> list[int]:
    if not all(part.strip().isdecimal() and int(part) for part in text.split(",")):
        raise SRNOError(f"{flag} {text!r}: write whole numbers, such as 48,64,96,128")
    return [int(part) for part in text.split(",")]


def _finish(out: Path, figure: Any, text: str, content: dict[str, Any]) -> None:
    """Print the numbers, and save them beside the figure."""
    from srno.reproduce.plotting import save_figure

    save_figure(figure, out)
    show(text)
    print_message(f"drew {out}")
    _save(out.with_suffix(""), out.stem, {"md": text, "json": _json(content)})


def _save(out: Path | None, name: str, texts: dict[str, str]) -> None:
    if out is not None:
        print_message("saved " + ", ".join(map(str, save(out, name, texts))))


def _json(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
