"""srno reproduce"""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from srno.commands.options import EvaluationFlags, ProtocolFlags, find_data, prepare_computing
from srno.commands.output import print_message, save, show, watch
from srno.errors import SRNOError
from srno.evaluation.protocols import parse_scales
from srno.reproduce.paper_figures import FIGURES, Figure

reproduce = App(name="reproduce", help="Reproduce the paper's tables and figures from checkpoints and pictures.")

TABLES = {
    "table1": "PSNR on the DIV2K validation set.",
    "table2": "PSNR on the benchmark sets.",
    "table4": "Ablations and running time on Set14.",
    "suppl": "Random and sequential sampling.",
}


def _register_table(name: str, text: str) -> None:
    def table(
        *,
        data: Annotated[list[Path] | None, Parameter(negative_iterable="")] = None,
        checkpoints: Path | None = None,
        max_pixels: int | None = None,
        bench: Path | None = None,
        memory: str | None = None,
        device: str = "auto",
        threads: int | None = None,
        cache: bool = True,
        out: Path | None = None,
    ) -> None:
        """Print a table of the paper with its numbers beside ours, and the commands that fill the gaps.

        Parameters
        ----------
        data
            Folder of sets, found by their names (DIV2K…, Set5, Set14, B100, Urban100); others are added to the table.
        checkpoints
            Folder of checkpoints (.safetensors, .pth) and training runs, matched to rows by their model config; a name
            that ends in -s means sequential sampling. The shipped models unless given.
        max_pixels
            Cut larger pictures to this many pixels around their centre; the printed protocol includes this.
        bench
            Running times saved by `srno bench --out`.
        memory
            Memory budget, such as 2G.
        device
            auto, cpu, cuda or mps.
        threads
            CPU threads; all cores unless given.
        cache
            Use cached scores and cache new ones.
        out
            Save as Markdown: OUT.md, or into OUT if that is a folder.
        """
        from srno.files import cache_folder
        from srno.reproduce.paper_tables import TableInputs, find_checkpoints, reproduce_table
        from srno.reproduce.published import load_published

        prepare_computing(threads)
        sets = find_data(data or [])
        found, unreadable = find_checkpoints(checkpoints)
        for error in unreadable:
            print_message(f"left out {error}")
        inputs = TableInputs(
            published=load_published(),
            found=found,
            sets=sets,
            upscaler=EvaluationFlags(memory=memory, device=device),
            watch=watch,
            cache=cache_folder("scores") if cache else None,
            max_pixels=max_pixels,
            milliseconds=_read_times(bench) if bench else None,
        )
        names = ("suppl-div2k", "suppl-benchmark") if name == "suppl" else (name,)
        _print_and_save(name, "\n".join(reproduce_table(each, inputs) for each in names), out)

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

    _print_and_save("table3", reproduce_costs(load_published()), out)


def _register_figure(name: str, figure: Figure) -> None:
    def draw(
        *,
        picture: Annotated[list[Path], Parameter(negative_iterable="")],
        model: Annotated[list[str] | None, Parameter(negative_iterable="")] = None,
        out: Path = Path(f"{name}.png"),
        scales: str = ",".join(figure.scales),
        boxes: str | None = None,
        protocol: Annotated[ProtocolFlags, Parameter(name="*")] = ProtocolFlags(),  # noqa: B008 (frozen)
        threads: int | None = None,
        upscaler: Annotated[EvaluationFlags, Parameter(name="*")] = EvaluationFlags(),  # noqa: B008 (frozen)
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
            Factors, a row each.
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
        pictures = [SetPicture(path.name, path) for path in picture]
        drawn = draw_figure(
            figure,
            [(method.name, method.upscale) for method in methods],
            pictures,
            parse_scales(scales),
            protocol.resolve(),
            parse_boxes(boxes) if boxes else (),
        )
        save_panel(drawn, out)
        print_message(f"drew {out}")

    reproduce.command(draw, name=name, help=figure.title)


for _name, _figure in FIGURES.items():
    _register_figure(_name, _figure)


reproduce.command(
    "srno.commands.miniature:miniature",
    name="miniature",
    help="The paper's comparison at small scale: all decoders and ablations trained alike.",
)


def _print_and_save(name: str, text: str, out: Path | None) -> None:
    show(text)
    if out is not None:
        print_message("saved " + ", ".join(map(str, save(out, name, {"md": text}))))


def _read_times(path: Path) -> dict[str, float]:
    try:
        rows = json.loads(path.read_text())["rows"]
        return {row["method"]: float(row["milliseconds_mean"]) for row in rows if row["method"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise SRNOError(f"--bench {path}: not a file written by `srno bench --out`") from None
