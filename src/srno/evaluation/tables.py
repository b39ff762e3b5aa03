"""Evaluations and comparisons as Markdown, CSV and JSON.

Every table includes its protocol. JSON has no infinity or NaN, so such scores are the strings "inf" and "nan".
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from srno.evaluation.comparison import CONFIDENCE, ComparedModel, Comparison, Difference
from srno.evaluation.evaluate import Evaluation
from srno.evaluation.metrics import Score

NO_VALUE = "–"


def markdown(evaluations: Sequence[Evaluation]) -> str:
    """Format one table per set: its pictures and their mean."""
    return "\n".join(_markdown_set(evaluation) for evaluation in evaluations)


def _markdown_set(evaluation: Evaluation) -> str:
    scales = list(evaluation.scores)
    names = dict.fromkeys(name for scores in evaluation.scores.values() for name in scores)
    rows = [[name, *_score_cells(evaluation.scores[scale].get(name) for scale in scales)] for name in names]
    means = _score_cells(evaluation.mean.get(scale) for scale in scales)
    header = ["picture", *(f"×{scale} {metric}" for scale in scales for metric in ("PSNR", "SSIM"))]
    rows.append([f"**{cell}**" for cell in ("mean", *means)])
    title = f"{evaluation.model} on {evaluation.data}"
    notes = [f"Note: {evaluation.note}"] if evaluation.note else []
    notes += [f"Skipped: {each}" for each in evaluation.skipped]
    return markdown_table(title, header, rows, [f"Protocol {evaluation.protocol}", *notes])


def csv_text(evaluations: Sequence[Evaluation]) -> str:
    """Format one line per picture and scale, means as picture `mean`; skipped pictures have a reason but no score."""
    lines: list[Sequence[object]] = []
    for evaluation in evaluations:
        scores = {scale: dict(row) for scale, row in evaluation.scores.items()}
        for scale, mean in evaluation.mean.items():
            scores[scale]["mean"] = mean
        cells = [[name, scale, each.psnr, each.ssim, ""] for scale, row in scores.items() for name, each in row.items()]
        cells += [[each.picture, each.scale, "", "", each.reason] for each in evaluation.skipped]
        lines += [[evaluation.model, evaluation.data, *row, evaluation.protocol] for row in cells]
    return _csv(["model", "data", "picture", "scale", "psnr", "ssim", "skipped", "protocol"], lines)


def json_text(evaluations: Sequence[Evaluation]) -> str:
    """Format as `{"mean": {"2": {"psnr": …, "ssim": …}, …}, "pictures": …, "protocol": …, …}`, see `to_dict`."""
    return _json(to_dict(evaluations))


def to_dict(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """Convert to plain data. Several sets are merged, with pictures named `set/picture`, and each is also in `sets`."""
    if len(evaluations) == 1:
        return _set_dict(evaluations[0])
    return _set_dict(_merge(evaluations)) | {"sets": {each.data: _set_dict(each) for each in evaluations}}


def _merge(evaluations: Sequence[Evaluation]) -> Evaluation:
    first = evaluations[0]
    scores = {
        scale: {f"{each.data}/{name}": score for each in evaluations for name, score in each.scores[scale].items()}
        for scale in first.scores
    }
    skipped = [replace(skip, picture=f"{each.data}/{skip.picture}") for each in evaluations for skip in each.skipped]
    names, seconds = ", ".join(each.data for each in evaluations), sum(each.seconds for each in evaluations)
    return Evaluation(first.model, names, first.protocol, scores, tuple(skipped), seconds, first.note)


def _set_dict(evaluation: Evaluation) -> dict[str, Any]:
    pictures: dict[str, dict[str, Any]] = {}
    for scale, scores in evaluation.scores.items():
        for name, score in scores.items():
            pictures.setdefault(name, {})[str(scale)] = _score_dict(score)
    return {
        "mean": {str(scale): _score_dict(score) for scale, score in evaluation.mean.items()},
        "pictures": pictures,
        "protocol": evaluation.protocol.to_dict(),
        "model": evaluation.model,
        "data": evaluation.data,
        "skipped": [
            {"picture": each.picture, "scale": str(each.scale), "reason": each.reason} for each in evaluation.skipped
        ],
        "seconds": round(evaluation.seconds, 3),
        "note": evaluation.note,
    }


def comparison_markdown(comparisons: Sequence[Comparison]) -> str:
    """Format one table per set: a row per model, the best in bold, and the differences to the first model."""
    return "\n".join(_markdown_comparison(comparison) for comparison in comparisons)


def _markdown_comparison(comparison: Comparison) -> str:
    header, columns = ["model"], [[compared.model for compared in comparison.models]]
    for scale in comparison.counts:
        header += [f"×{scale} PSNR", f"×{scale} SSIM", f"×{scale} ΔPSNR"]
        cells = [_score_cells([compared.mean.get(scale)]) for compared in comparison.models]
        columns += [best_in_bold([psnr for psnr, _ in cells]), best_in_bold([ssim for _, ssim in cells])]
        gains = [_difference_cell(compared.psnr.get(scale)) for compared in comparison.models[1:]]
        columns.append([NO_VALUE, *gains])
    first = comparison.models[0].model
    note = f"ΔPSNR: paired mean difference to {first} ± half its {CONFIDENCE:.0%} confidence interval (Student's t)."
    rows = [list(row) for row in zip(*columns, strict=True)]
    counts = ", ".join(f"{count} at ×{scale}" for scale, count in comparison.counts.items())
    title = f"{comparison.data}, pictures: {counts}"
    notes = [f"Note: {each}" for each in comparison.notes] + [f"Skipped: {each}" for each in comparison.skipped]
    return markdown_table(title, header, rows, [f"Protocol {comparison.protocol}. {note}", *notes])


def comparison_csv(comparisons: Sequence[Comparison]) -> str:
    """Format one line per set, model and scale, with the differences to the first model and their half-widths."""
    header = ["data", "model", "scale", "pictures", "psnr", "ssim"]
    header += ["psnr_difference", "psnr_half_width", "ssim_difference", "ssim_half_width", "protocol"]
    lines: list[list[object]] = []
    for comparison in comparisons:
        for compared in comparison.models:
            for scale, score in compared.mean.items():
                differences = [each.get(scale, Difference(math.nan, None)) for each in (compared.psnr, compared.ssim)]
                row: list[object] = [scale, comparison.counts[scale], score.psnr, score.ssim]
                row += [value for each in differences for value in (each.mean, each.half_width)]
                lines.append([comparison.data, compared.model, *row, comparison.protocol])
    return _csv(header, lines)


def comparison_json(comparisons: Sequence[Comparison]) -> str:
    """A list of sets, each `{"data": …, "protocol": …, "pictures": {"2": 5, …}, "models": […], "skipped": […]}`."""
    return _json(
        [
            {
                "data": comparison.data,
                "protocol": comparison.protocol.to_dict(),
                "pictures": {str(scale): count for scale, count in comparison.counts.items()},
                "models": [_model_dict(compared) for compared in comparison.models],
                "skipped": comparison.skipped,
                "notes": comparison.notes,
            }
            for comparison in comparisons
        ]
    )


def _model_dict(compared: ComparedModel) -> dict[str, Any]:
    differences = {
        str(scale): {"psnr": _difference_dict(compared.psnr[scale]), "ssim": _difference_dict(compared.ssim[scale])}
        for scale in compared.psnr
    }
    means = {str(scale): _score_dict(score) for scale, score in compared.mean.items()}
    return {"model": compared.model, "mean": means, "difference_to_first": differences}


def _difference_dict(difference: Difference) -> dict[str, Any]:
    return {"mean": _number(difference.mean), "half_width_95": difference.half_width}


def _score_dict(score: Score) -> dict[str, Any]:
    return {"psnr": _number(score.psnr), "ssim": _number(score.ssim)}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _score_cells(scores: Iterable[Score | None]) -> list[str]:
    pairs = [(f"{score.psnr:.2f}", f"{score.ssim:.4f}") if score else (NO_VALUE, NO_VALUE) for score in scores]
    return [cell for pair in pairs for cell in pair]


def _difference_cell(difference: Difference | None) -> str:
    if difference is None:
        return NO_VALUE
    interval = "" if difference.half_width is None else f" ± {difference.half_width:.3f}"
    return f"{difference.mean:+.3f}{interval}"


def best_in_bold(cells: Sequence[str]) -> list[str]:
    """Mark the best cells in bold; cells that are equal after rounding are all marked."""
    values = [math.nan if cell == NO_VALUE else float(cell) for cell in cells]
    best = max((value for value in values if not math.isnan(value)), default=math.nan)
    return [f"**{cell}**" if value == best else cell for cell, value in zip(cells, values, strict=True)]


def markdown_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """Format a titled table with text in the first column and numbers in the others, and a paragraph per note."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    table = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return f"**{title}**\n\n{table}\n" + "".join(f"\n{note}\n" for note in notes)


def _csv(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *lines])
    return text.getvalue()


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
