"""srno reproduce fig-basis, fig-rank and fig-kernel: what a model has learnt"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from srno.commands.options import find_data
from srno.commands.output import print_message, watch
from srno.commands.reproduce_flags import ANALYSIS, Analysing
from srno.commands.reproduce_output import finish_figure
from srno.errors import SRNOError
from srno.evaluation.protocols import Scale, parse_scales


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
    finish_figure(out, draw_ranks(found, title), ranks_markdown(found, title, rules), ranks_dict(found, rules))


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
    finish_figure(out, draw_kernels(study, title), kernels_markdown(study, title, rules), kernels_dict(study, rules))
