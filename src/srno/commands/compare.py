"""srno compare"""

from pathlib import Path
from typing import TYPE_CHECKING

from srno.commands.options import (
    DEFAULT_CLEANING_FLAGS,
    DEFAULT_PROTOCOL_FLAGS,
    Cleaning,
    Rules,
    Scoring,
    find_data,
    prepare_computing,
)
from srno.commands.output import DEFAULT_RESULT_FLAGS, Result, print_message, watch
from srno.errors import SRNOError
from srno.evaluation.protocols import Protocol, Scale, parse_scales

if TYPE_CHECKING:
    from srno.evaluation.datasets import PictureSet, SetPicture
    from srno.evaluation.evaluate import Evaluation
    from srno.evaluation.methods import Method


def compare(
    *models: str,
    scoring: Scoring,
    result: Result = DEFAULT_RESULT_FLAGS,
    protocol: Rules = DEFAULT_PROTOCOL_FLAGS,
    upscaler: Cleaning = DEFAULT_CLEANING_FLAGS,
    panel: Path | None = None,
    picture: str | None = None,
    scale: str = "4",
    boxes: str | None = None,
) -> None:
    """Compare models in one table with the best in bold and the paired difference to the first, with its confidence
    interval; --panel also draws the paper's figure of close-ups.

    Parameters
    ----------
    models
        As for `srno evaluate`; NAME=MODEL sets the name in the table.
    panel
        Draw one picture with boxes and every model's close-ups to this PNG.
    picture
        The picture to draw, as named in the data; the first unless given.
    scale
        The factor to draw it at.
    boxes
        Boxes to enlarge, LEFT,TOP,WIDTH,HEIGHT in pixels of the truth, several separated by semicolons; where the
        errors are largest unless given.
    """
    from srno.evaluation.comparison import compare as compare_evaluations
    from srno.evaluation.methods import evaluate_method, find_methods
    from srno.evaluation.tables import comparison_csv, comparison_json, comparison_markdown
    from srno.files import cache_folder

    if len(models) < 2:
        raise SRNOError("compare needs two models or more, such as: srno compare default bicubic --data Set5")
    prepare_computing(upscaler.threads)
    scales, rules, sets = parse_scales(scoring.scales), protocol.resolve(), find_data(scoring.data)
    methods = find_methods(models, upscaler, rules.compression)
    cache = cache_folder("scores") if scoring.cache else None
    by_method: list[tuple[Evaluation, ...]] = []
    for method in methods:
        with watch(method.name) as progress:
            by_method.append(evaluate_method(method, sets, scales, rules, cache=cache, progress=progress))
    comparisons = [compare_evaluations(evaluations) for evaluations in zip(*by_method, strict=True)]
    texts = {
        "json": comparison_json(comparisons),
        "md": comparison_markdown(comparisons),
        "csv": comparison_csv(comparisons),
    }
    result.write("-".join(["compare", *(method.name for method in methods)]), texts)
    if panel is not None:
        _draw(panel, methods, _find_picture(sets, picture), parse_scales(scale)[0], rules, boxes)


def _draw(
    panel: Path, methods: "list[Method]", picture: "SetPicture", scale: Scale, protocol: Protocol, boxes: str | None
) -> None:
    from srno.evaluation.datasets import reason_to_skip
    from srno.reproduce.exhibit import make_exhibit, parse_boxes
    from srno.reproduce.panel import draw_panel
    from srno.reproduce.plotting import save_png

    if reason := reason_to_skip(picture, scale, protocol):
        raise SRNOError(f"--panel {panel}: {picture.name} at ×{scale}: {reason}")
    supported = [(method.name, method.upscale) for method in methods if max(scale.y, scale.x) <= method.largest]
    exhibit = make_exhibit(supported, picture, scale, protocol, parse_boxes(boxes) if boxes else ())
    save_png(panel, draw_panel([exhibit]).save)
    print_message(f"drew {panel}")


def _find_picture(sets: "list[PictureSet]", name: str | None) -> "SetPicture":
    """Find a picture by file name, stem, or set/name."""
    pictures = {f"{each.name}/{picture.name}": picture for each in sets for picture in each.pictures}
    if name is None:
        return next(iter(pictures.values()))
    for key, picture in pictures.items():
        if name in (key, picture.name, picture.path.stem):
            return picture
    raise SRNOError(f"--picture {name!r} is not in the data; there are {', '.join(list(pictures)[:8])} …")
