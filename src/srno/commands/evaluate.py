"""srno evaluate"""

from srno.commands.options import (
    DEFAULT_CLEANING_FLAGS,
    DEFAULT_PROTOCOL_FLAGS,
    Cleaning,
    Rules,
    Scoring,
    find_data,
    prepare_computing,
)
from srno.commands.output import DEFAULT_RESULT_FLAGS, Result, watch


def evaluate(
    model: str = "default",
    /,
    *,
    scoring: Scoring,
    result: Result = DEFAULT_RESULT_FLAGS,
    protocol: Rules = DEFAULT_PROTOCOL_FLAGS,
    upscaler: Cleaning = DEFAULT_CLEANING_FLAGS,
) -> None:
    """Score a model on sets of pictures: PSNR and SSIM of each picture and on average, under a named protocol.

    A stopped evaluation resumes: scores are cached by the content of weights and pictures, and by protocol.

    Parameters
    ----------
    model
        `default`, a shipped model, a checkpoint, `bicubic`, or comma-separated checkpoints of fixed-scale networks.
    """
    from srno.evaluation.methods import evaluate_method, find_method
    from srno.evaluation.protocols import parse_scales
    from srno.evaluation.tables import csv_text, json_text, markdown
    from srno.files import cache_folder

    prepare_computing(upscaler.threads)
    scales, rules, sets = parse_scales(scoring.scales), protocol.resolve(), find_data(scoring.data)
    method = find_method(model, upscaler, rules.compression)
    with watch(method.name) as progress:
        cache = cache_folder("scores") if scoring.cache else None
        evaluations = evaluate_method(method, sets, scales, rules, cache=cache, progress=progress)
    texts = {"json": json_text(evaluations), "md": markdown(evaluations), "csv": csv_text(evaluations)}
    result.write("-".join([method.name, *(each.data for each in evaluations)]), texts)
