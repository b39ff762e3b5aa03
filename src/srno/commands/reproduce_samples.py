"""srno reproduce fig-samples and fig-patterns: the points that a model was trained on"""

from pathlib import Path

from srno.commands.output import print_message, show
from srno.commands.reproduce_flags import EXACT, PAPER_RULES, SCORING, Evaluating, Scoring, TableRules
from srno.commands.reproduce_output import finish_figure
from srno.commands.reproduce_tables import table_inputs
from srno.errors import SRNOError
from srno.evaluation.protocols import parse_scales


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
    inputs, scales = table_inputs(flags, protocol, upscaler), parse_scales(flags.scales or "2,3,4,6,8")
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
    from srno.reproduce.pattern_figure import draw_patterns
    from srno.reproduce.plotting import save_figure

    save_figure(draw_patterns(read_rgb(picture), side=side, scale=scale, seed=seed), out)
    print_message(f"drew {out}")


def _whole_numbers(flag: str, text: str) -> list[int]:
    if not all(part.strip().isdecimal() and int(part) for part in text.split(",")):
        raise SRNOError(f"{flag} {text!r}: write whole numbers, such as 48,64,96,128")
    return [int(part) for part in text.split(",")]
