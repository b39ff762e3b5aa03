"""Comparison of models on the same pictures: means, and paired differences to the first with their intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from srno.errors import SRNOError
from srno.evaluation.evaluate import Evaluation
from srno.evaluation.metrics import Score
from srno.evaluation.protocols import Protocol, Scale

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """The mean difference over pictures, with the half width of its 95 % confidence interval."""

    mean: float
    half_width: float | None
    """None if no interval exists: fewer than two pictures, or an infinite PSNR"""


@dataclass(frozen=True)
class ComparedModel:
    """One model's row: its means, and its differences to the first model, per supported scale."""

    model: str
    mean: dict[Scale, Score]
    psnr: dict[Scale, Difference]
    ssim: dict[Scale, Difference]


@dataclass(frozen=True)
class Comparison:
    """Models on one set under one protocol; the first is the baseline."""

    data: str
    protocol: Protocol
    counts: dict[Scale, int]
    """number of scored pictures at each scale"""
    models: tuple[ComparedModel, ...]
    skipped: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """remarks on how models were evaluated, one line each"""


def compare(evaluations: Sequence[Evaluation]) -> Comparison:
    """Compare evaluations of the same pictures. A model may lack a whole scale, but not single pictures of a scale."""
    first = evaluations[0]
    pictures: dict[Scale, set[str]] = {}
    for other in evaluations:
        same = (other.data, other.protocol, set(other.scores)) == (first.data, first.protocol, set(first.scores))
        scored = {scale: set(scores) for scale, scores in other.scores.items() if scores}
        if not same or any(pictures.setdefault(scale, names) != names for scale, names in scored.items()):
            raise SRNOError(f"{other.model} and {first.model} were scored on different pictures, scales or protocols")
    counts = {scale: len(pictures[scale]) for scale in first.scores if scale in pictures}
    models = tuple(_compared_model(evaluation, first) for evaluation in evaluations)
    skipped = dict.fromkeys(str(each) for evaluation in evaluations for each in evaluation.skipped)
    notes = tuple(f"{evaluation.model}: {evaluation.note}" for evaluation in evaluations if evaluation.note)
    return Comparison(first.data, first.protocol, counts, models, tuple(skipped), notes)


def _compared_model(evaluation: Evaluation, first: Evaluation) -> ComparedModel:
    psnr: dict[Scale, Difference] = {}
    ssim: dict[Scale, Difference] = {}
    for scale, ours in evaluation.scores.items():
        theirs = first.scores[scale]
        if ours and theirs:
            psnr[scale] = paired_difference([(score.psnr, theirs[name].psnr) for name, score in ours.items()])
            ssim[scale] = paired_difference([(score.ssim, theirs[name].ssim) for name, score in ours.items()])
    return ComparedModel(evaluation.model, evaluation.mean, psnr, ssim)


def paired_difference(pairs: Sequence[tuple[float, float]]) -> Difference:
    """Mean of a - b over pairs (a, b), with Student's interval for it."""
    differences = [0.0 if a == b else a - b for a, b in pairs]
    count = len(differences)
    mean = sum(differences) / count
    if count < 2 or not math.isfinite(mean):
        return Difference(mean, None)
    return Difference(mean, student_t(count - 1) * stdev(differences) / math.sqrt(count))


def student_t(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The t with probability `confidence` between -t and t, for a whole number of degrees of freedom."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if _student_coverage(angle, freedom) < confidence else (low, angle)
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _student_coverage(angle: float, freedom: int) -> float:
    """Probability between -t and t with tan(angle) = t/√freedom: the finite series, Abramowitz and Stegun 26.7.3–4."""
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= (k - 1) / k * cosine**2
    series = math.sin(angle) * total
    return 2 / math.pi * (angle + series) if odd else series
