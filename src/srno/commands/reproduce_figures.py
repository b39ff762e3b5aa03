"""srno reproduce fig-…: the paper's figures, and what a model has learnt"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from srno.commands.options import (
    DEFAULT_EVALUATION_FLAGS,
    DEFAULT_PROTOCOL_FLAGS,
    Evaluating,
    Folders,
    Rules,
    find_data,
    prepare_computing,
)
from srno.commands.output import finish_figure, print_message, show, watch
from srno.commands.reproduce_tables import (
    ANALYSIS,
    PAPER,
    PAPER_RULES,
    Analysing,
    AnalysingSets,
    Paper,
    TableRules,
    table_inputs,
)
from srno.errors import SRNOError
from srno.evaluation.protocols import Scale, parse_scales
from srno.reproduce.panel import Figure, parse_rows


def panel_command(name: str, figure: Figure) -> Callable[..., None]:
    """The command that draws one of the paper's visual comparisons."""

    def draw(
        *,
        picture: Folders,
        model: Annotated[list[str] | None, Parameter(negative_iterable="")] = None,
        out: Path = Path(f"{name}.png"),
        scales: str = ",".join(figure.scales),
        boxes: str | None = None,
        protocol: Rules = DEFAULT_PROTOCOL_FLAGS,
        upscaler: Evaluating = DEFAULT_EVALUATION_FLAGS,
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
        """
        from srno.evaluation.datasets import SetPicture
        from srno.evaluation.methods import find_methods
        from srno.reproduce.exhibit import parse_boxes
        from srno.reproduce.panel import draw_figure
        from srno.reproduce.plotting import save_png

        prepare_computing(upscaler.threads)
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
        save_png(out, drawn.save)
        print_message(f"drew {out}")

    return draw


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


def fig_rank(*, out: Path = Path("fig-rank.png"), analysis: AnalysingSets) -> None:
    """Measure and draw singular spectra, effective ranks and numerical ranks of z, Q, K and V on whole pictures.

    Parameters
    ----------
    out
        The PNG to write; OUT.md and OUT.json have the numbers.
    """
    from srno.reproduce.rank_figure import draw_ranks, ranks_dict, ranks_markdown
    from srno.reproduce.summarised import summarise_set

    upscaler, rules, sets = analysis.upscaler(), analysis.protocol(), find_data(analysis.data)
    with watch("fig-rank") as report:
        found = list(summarise_set(upscaler, sets, parse_scales(analysis.scales), rules, report))
    title = f"Ranks on {', '.join(each.name for each in sets)}, {upscaler.name}"
    finish_figure(out, draw_ranks(found, title), ranks_markdown(found, title, rules), ranks_dict(found, rules))


def fig_kernel(*, scale: str = "4", out: Path = Path("fig-kernel.png"), analysis: AnalysingSets) -> None:
    """Draw the matrices M of each layer for each picture, and measure their distances.

    Parameters
    ----------
    scale
        The factor by which the pictures are made small, and at which M is drawn.
    out
        The PNG to write; OUT.md and OUT.json have the numbers.
    """
    from srno.reproduce.kernel_figure import draw_kernels, kernels_dict, kernels_markdown, study_kernels

    upscaler, rules, sets = analysis.upscaler(), analysis.protocol(), find_data(analysis.data)
    with watch("fig-kernel") as report:
        study = study_kernels(upscaler, sets, Scale.parse(scale), parse_scales(analysis.scales), rules, report)
    title = f"Kernel matrices on {', '.join(each.name for each in sets)} ×{scale}, {upscaler.name}"
    finish_figure(out, draw_kernels(study, title), kernels_markdown(study, title, rules), kernels_dict(study, rules))


def fig_samples(
    *,
    preset: str = "edsr-baseline",
    sides: str = "48,64,96,128",
    out: Path = Path("fig-samples.png"),
    paper: Paper = PAPER,
    protocol: TableRules = PAPER_RULES,
    upscaler: Evaluating = DEFAULT_EVALUATION_FLAGS,
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
    inputs, scales = table_inputs(paper, protocol, upscaler), parse_scales(paper.scales or "2,3,4,6,8")
    study = study_samples(rows, scales, inputs)
    title = f"Samples and PSNR on {', '.join(each.name for each in inputs.sets.sets) or 'no set'}"
    text = samples_markdown(study, scales, title)
    if study.complete:
        finish_figure(out, draw_samples(study, scales, title), text, samples_dict(study))
    else:
        show(text)


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
    from srno.reproduce.plotting import save_figure
    from srno.reproduce.sample_figure import draw_patterns

    save_figure(draw_patterns(read_rgb(picture), side=side, scale=scale, seed=seed), out)
    print_message(f"drew {out}")


def _whole_numbers(flag: str, text: str) -> list[int]:
    if not all(part.strip().isdecimal() and int(part) for part in text.split(",")):
        raise SRNOError(f"{flag} {text!r}: write whole numbers, such as 48,64,96,128")
    return [int(part) for part in text.split(",")]
