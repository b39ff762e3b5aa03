"""Score a model on sets of pictures. A model is any function from a low-resolution picture and a size to a picture.

Scores are cached, one small JSON file each, so that a stopped evaluation resumes.
"""

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet, SetPicture, load_pair, reason_to_skip
from srno.evaluation.metrics import Score, score
from srno.evaluation.protocols import Protocol, Scale
from srno.files import write_atomically
from srno.imaging.resize import matlab_bicubic_float

ReportProgress = Callable[[int, int, str], None]
"""Called with (done, total, picture name) after each picture and scale."""

METRICS_VERSION = 1
"""Incremented whenever the arithmetic of the scores changes, which invalidates all older entries."""


@dataclass(frozen=True)
class TimedScore:
    """A score and the time that the upscaling took when it was measured."""

    score: Score
    seconds: float


@dataclass(frozen=True)
class ScoreCache:
    """A folder of entries for one model. `weights` hashes everything that affects its output, options included."""

    weights: str
    folder: Path

    def path(self, picture: str, scale: Scale, protocol: Protocol) -> Path:
        """The file of an entry, by the picture's content hash; the protocol enters by its rules, not by its name."""
        rules = {key: value for key, value in protocol.to_dict().items() if key not in ("name", "description")}
        key = json.dumps([METRICS_VERSION, self.weights, picture, str(scale), rules])
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.json"

    def get(self, picture: str, scale: Scale, protocol: Protocol) -> TimedScore | None:
        """Read an entry; None if it is missing or damaged."""
        try:
            stored = json.loads(self.path(picture, scale, protocol).read_text())
            return TimedScore(Score(float(stored["psnr"]), float(stored["ssim"])), float(stored["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, picture: str, scale: Scale, protocol: Protocol, entry: TimedScore) -> None:
        """Store an entry atomically."""
        path = self.path(picture, scale, protocol)
        # JSON has no infinity, but float() parses the string.
        values = {key: str(value) for key, value in asdict(entry.score).items()}
        try:
            write_atomically(path, json.dumps(values | {"seconds": entry.seconds}).encode())
        except OSError as error:
            raise SRNOError(f"the cache folder {self.folder} cannot be written: {error.strerror}") from None


class Upscale(Interface):
    """Interface of a model under evaluation."""

    def __call__(
        self, lr: NDArray[np.float32], *, size: tuple[int, int], scale: tuple[float, float], cell_clip: bool
    ) -> NDArray[np.float32]:
        """`lr` (h, w, 3) in [0, 1] → (*size, 3), not clamped; `size` is (H, W), `scale` the nominal (y, x) factors."""
        ...


def bicubic(
    lr: NDArray[np.float32],
    *,
    size: tuple[int, int],
    scale: tuple[float, float],  # noqa: ARG001
    cell_clip: bool,  # noqa: ARG001
) -> NDArray[np.float32]:
    """Upscale by MATLAB's bicubic kernel in floating point, the baseline of every table."""
    return matlab_bicubic_float(lr, size)


@dataclass(frozen=True)
class SkippedScore:
    """A picture that could not be scored at a scale, and why."""

    picture: str
    scale: Scale
    reason: str

    def __str__(self) -> str:
        return f"{self.picture} at ×{self.scale}: {self.reason}"


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on one set under a protocol."""

    model: str
    data: str
    protocol: Protocol
    scores: Mapping[Scale, Mapping[str, Score]]
    """per scale, per picture; a scale at which every picture was skipped is empty"""
    skipped: tuple[SkippedScore, ...]
    seconds: float
    """spent in the model; for cached scores, the time when they were measured"""
    note: str = ""
    """remark on how the model was evaluated"""

    @property
    def mean(self) -> dict[Scale, Score]:
        """The mean of the per-picture scores, for each scale that has any."""
        return {scale: mean_score(scores.values()) for scale, scores in self.scores.items() if scores}


def mean_score(scores: Iterable[Score]) -> Score:
    """The mean PSNR (of decibels, not of squared errors) and the mean SSIM."""
    listed = list(scores)
    return Score(fmean(score.psnr for score in listed), fmean(score.ssim for score in listed))


def evaluate(
    upscale: Upscale,
    pictures: PictureSet,
    scales: Sequence[Scale],
    protocol: Protocol,
    *,
    model: str,
    cache: ScoreCache | None = None,
    progress: ReportProgress | None = None,
) -> Evaluation:
    """Score `upscale`, named `model`, on each picture at each scale. Cached scores are not recomputed."""
    return evaluate_sets(upscale, [pictures], scales, protocol, model=model, cache=cache, progress=progress)[0]


def evaluate_sets(
    upscale: Upscale,
    sets: Sequence[PictureSet],
    scales: Sequence[Scale],
    protocol: Protocol,
    *,
    model: str,
    cache: ScoreCache | None = None,
    progress: ReportProgress | None = None,
) -> tuple[Evaluation, ...]:
    """Run `evaluate` on several sets, with one progress count over all of them."""
    total = sum(len(each.pictures) for each in sets) * len(scales)
    done = itertools.count(1)

    def report(picture: str) -> None:
        if progress:
            progress(next(done), total, picture)

    evaluations = tuple(_evaluate_set(upscale, each, scales, protocol, model, cache, report) for each in sets)
    if not any(evaluation.mean for evaluation in evaluations):
        reasons = [skipped for evaluation in evaluations for skipped in evaluation.skipped]
        raise SRNOError(f"no picture can be scored; {reasons[0] if reasons else 'give --scales such as 2,3,4'}")
    return evaluations


def _evaluate_set(
    upscale: Upscale,
    pictures: PictureSet,
    scales: Sequence[Scale],
    protocol: Protocol,
    model: str,
    cache: ScoreCache | None,
    report: Callable[[str], None],
) -> Evaluation:
    scores: dict[Scale, dict[str, Score]] = {scale: {} for scale in scales}
    skipped: list[SkippedScore] = []
    seconds = 0.0
    for picture, scale in itertools.product(pictures.pictures, scales):
        if reason := reason_to_skip(picture, scale, protocol):
            skipped.append(SkippedScore(picture.name, scale, reason))
        else:
            entry = _score_cached(upscale, picture, scale, protocol, cache)
            scores[scale][picture.name] = entry.score
            seconds += entry.seconds
        report(picture.name)
    return Evaluation(model, pictures.name, protocol, scores, tuple(skipped), seconds)


def _score_cached(
    upscale: Upscale, picture: SetPicture, scale: Scale, protocol: Protocol, cache: ScoreCache | None
) -> TimedScore:
    if cache is None:
        return score_picture(upscale, picture, scale, protocol)
    digest = picture.digest(scale, protocol)
    entry = cache.get(digest, scale, protocol)
    if entry is None:
        entry = score_picture(upscale, picture, scale, protocol)
        cache.put(digest, scale, protocol, entry)
    return entry


def score_picture(upscale: Upscale, picture: SetPicture, scale: Scale, protocol: Protocol) -> TimedScore:
    """Make the pair, upscale, compare."""
    lr, hr = (np.divide(pixels, 255, dtype=np.float32) for pixels in load_pair(picture, scale, protocol))
    size = (hr.shape[0], hr.shape[1])
    start = time.perf_counter()
    sr = upscale(lr, size=size, scale=(scale.y, scale.x), cell_clip=protocol.cell_clip)
    seconds = time.perf_counter() - start
    if sr.shape != hr.shape:
        raise ValueError(f"the model returned {sr.shape}, expected {hr.shape}")
    return TimedScore(score(sr, hr, protocol.channel, protocol.border.pixels(scale)), seconds)
