"""srno evaluate"""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from srno.commands.options import CleaningFlags, ProtocolFlags, find_data, prepare_computing
from srno.commands.output import print_message, save, show, watch


def evaluate(
    model: str,
    /,
    *,
    data: Annotated[list[Path], Parameter(negative_iterable="")],
    scales: str = "2,3,4",
    protocol: Annotated[ProtocolFlags, Parameter(name="*")] = ProtocolFlags(),  # noqa: B008 (frozen)
    upscaler: Annotated[CleaningFlags, Parameter(name="*")] = CleaningFlags(),  # noqa: B008 (frozen)
    threads: int | None = None,
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    cache: bool = True,
) -> None:
    """Score a model on sets of pictures: PSNR and SSIM of each picture and on average, under a named protocol.

    A stopped evaluation resumes: scores are cached by the content of weights and pictures, and by protocol.

    Parameters
    ----------
    model
        `default`, a shipped model, a checkpoint, `bicubic`, or comma-separated checkpoints of fixed-scale networks.
    data
        A set (HR/, perhaps LR_bicubic/X2 …), a folder of pictures, or a parent of such; may be given several times.
    scales
        Factors, such as 2,3,6.6,2x3 (width×height).
    threads
        CPU threads; all cores unless given.
    out
        Save the result as JSON, Markdown and CSV: OUT.json …, or into OUT if that is a folder.
    as_json
        Print JSON.
    cache
        Use cached scores and cache new ones.
    """
    from srno.evaluation.methods import evaluate_method, find_method
    from srno.evaluation.protocols import parse_scales
    from srno.evaluation.tables import csv_text, json_text, markdown
    from srno.files import cache_folder

    prepare_computing(threads)
    wanted, rules, sets = parse_scales(scales), protocol.resolve(), find_data(data)
    method = find_method(model, upscaler, rules.compression)
    with watch(method.name) as progress:
        folder = cache_folder("scores") if cache else None
        evaluations = evaluate_method(method, sets, wanted, rules, cache=folder, progress=progress)
    texts = {"json": json_text(evaluations), "md": markdown(evaluations), "csv": csv_text(evaluations)}
    if as_json:
        sys.stdout.write(texts["json"])
    else:
        show(texts["md"])
    if out is not None:
        name = "-".join([method.name, *(each.data for each in evaluations)])
        print_message("saved " + ", ".join(map(str, save(out, name, texts))))
