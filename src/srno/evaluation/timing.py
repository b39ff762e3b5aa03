"""Running times as in the paper's table 4: the minimum of several rounds with models interleaved; and peak memory."""

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from srno.config import ModelConfig
from srno.errors import SRNOError
from srno.evaluation.cost import profile
from srno.evaluation.evaluate import ReportProgress
from srno.evaluation.forms import Form, PeakJob, forms_of, load_or_build, peak_memory, render_form
from srno.evaluation.protocols import Scale
from srno.operator.model import Model

SYNTHETIC_SIZES = ((288, 352), (352, 288))
"""(height, width) of the pictures if no data is given: the size of the smaller pictures of Set14."""


@dataclass(frozen=True)
class TimedModel:
    """A model in one form."""

    name: str
    form: Form
    model: Model

    def supports(self, scale: Scale) -> bool:
        """Fixed-scale networks support only their own scale."""
        only = self.model.config.only_scale
        return only is None or scale == Scale(only, only)


@dataclass(frozen=True)
class TimedRender:
    """A render to time; sizes are (height, width)."""

    number: int
    """distinguishes pictures of the same size"""
    scale: Scale
    lr: tuple[int, int]
    size: tuple[int, int]


@dataclass(frozen=True)
class Timing:
    """A row of the table."""

    model: str
    form: Form
    config: ModelConfig
    parameters: int
    flops_paper: int
    """of the textbook forward at 128² pixels and points, as the paper counts"""
    seconds: Mapping[Scale, float]
    """mean over the pictures"""
    pixel_seconds: float
    """time of all jobs over their output pixels"""
    peak: int
    """bytes in addition to the model, for the largest job"""

    @property
    def mean(self) -> float:
        """Seconds, over pictures and scales."""
        return fmean(self.seconds.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "model": self.model,
            "form": self.form,
            "parameters": self.parameters,
            "flops_paper": self.flops_paper,
            "milliseconds": {str(scale): 1e3 * value for scale, value in self.seconds.items()},
            "milliseconds_mean": 1e3 * self.mean,
            "microseconds_per_pixel": 1e6 * self.pixel_seconds,
            "peak_bytes": self.peak,
        }


def make_jobs(sizes: Sequence[tuple[int, int]], scales: Sequence[Scale]) -> list[TimedRender]:
    """List a render of each (height, width) at each scale that leaves at least one low-resolution pixel."""
    jobs: list[TimedRender] = []
    for number, (size, scale) in enumerate(itertools.product(sizes, scales)):
        if min(lr := scale.lr_size(size)) > 0:
            jobs.append(TimedRender(number, scale, lr, scale.hr_size(lr)))
    if not jobs:
        raise SRNOError("every picture is too small for all of the --scales")
    return jobs


def bench(
    models: Sequence[str],
    jobs: Sequence[TimedRender],
    *,
    repeats: int = 3,
    memory: int | None = None,
    device: str = "cpu",
    report: ReportProgress,
) -> list[Timing]:
    """Time presets (with random weights) and checkpoints in all their forms."""
    loaded = [(name, load_or_build(name, device)) for name in dict.fromkeys(models)]
    timed_models = [TimedModel(name, form, model) for name, model in loaded for form in forms_of(model.config)]
    for timed in timed_models:
        if not any(timed.supports(job.scale) for job in jobs):
            raise SRNOError(f"{timed.name} supports none of the --scales; it is a fixed-scale network")
    renders = repeats * len(jobs) * len(timed_models)
    total = renders + len(timed_models)
    best = interleaved_minimum(
        timed_models, jobs, repeats, memory, device, lambda done, _, text: report(done, total, text)
    )
    rows: list[Timing] = []
    for number, (timed, seconds) in enumerate(zip(timed_models, best, strict=True)):
        report(renders + number, total, f"memory of {timed.name} {timed.form}")
        taken = {job: value for job, value in zip(jobs, seconds, strict=True) if math.isfinite(value)}
        largest = max(taken, key=lambda job: math.prod(job.size) + math.prod(job.lr))
        peak = peak_memory(
            PeakJob(
                model=timed.name,
                form=timed.form,
                lr=largest.lr,
                size=largest.size,
                memory=memory,
                device=device,
                threads=torch.get_num_threads(),
            )
        )
        rows.append(_row(timed, taken, peak))
    report(total, total, "done")
    return rows


def _row(timed: TimedModel, taken: Mapping[TimedRender, float], peak: int) -> Timing:
    cost = profile(timed.model.config).total
    scales = dict.fromkeys(job.scale for job in taken)
    return Timing(
        model=timed.name,
        form=timed.form,
        config=timed.model.config,
        parameters=cost.parameters,
        flops_paper=cost.flops_paper,
        seconds={scale: fmean(value for job, value in taken.items() if job.scale == scale) for scale in scales},
        pixel_seconds=sum(taken.values()) / sum(math.prod(job.size) for job in taken),
        peak=peak,
    )


def interleaved_minimum(
    timed_models: Sequence[TimedModel],
    jobs: Sequence[TimedRender],
    repeats: int,
    memory: int | None,
    device: str,
    report: ReportProgress,
) -> list[list[float]]:
    """Measure seconds per model and job, the minimum of several rounds; infinite if the model lacks the scale.

    Models take turns at every job, in a different order each round, so that other load affects all alike.
    """
    best = [[math.inf] * len(jobs) for _ in timed_models]
    total, done = repeats * len(jobs) * len(timed_models), 0
    for turn in range(repeats):
        for number, job in enumerate(jobs):
            image = torch.rand(3, *job.lr, device=device) * 2 - 1
            for offset in range(len(timed_models)):
                index = (offset + turn + number) % len(timed_models)
                timed = timed_models[index]
                report(done, total, f"{timed.name} {timed.form} ×{job.scale}")
                if timed.supports(job.scale):
                    taken = _time(timed, image, job.size, memory)
                    best[index][number] = min(best[index][number], taken)
                done += 1
    return best


def _time(timed: TimedModel, image: Tensor, size: tuple[int, int], memory: int | None) -> float:
    start = time.perf_counter()
    picture = render_form(timed.model, timed.form, image, size, memory)
    picture[0, 0, 0].item()  # waits for a GPU
    return time.perf_counter() - start
