"""The paper's running-time table: time over pictures and scales, minimum of several, all models in turn; and memory."""

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from srno.config import ModelConfig
from srno.errors import SRNOError
from srno.evaluation.cost import profile
from srno.evaluation.forms import Form, forms_of, load_or_build, render_form
from srno.evaluation.peak import PeakJob, peak_memory
from srno.evaluation.protocols import Scale
from srno.operator.model import Model

SYNTHETIC = ((288, 352), (352, 288))
"""(height, width) of the pictures that are taken when none are given: Set14's smaller ones have this size."""

Report = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Contender:
    """A model in one form."""

    name: str
    form: Form
    model: Model

    def can(self, scale: Scale) -> bool:
        """Networks of a fixed scale are timed at that one alone."""
        only = self.model.config.only_scale
        return only is None or scale == Scale(only, only)


@dataclass(frozen=True)
class TimedRender:
    """A picture to be made; sizes are (height, width)."""

    number: int
    """tells pictures of the same size apart"""
    scale: Scale
    lr: tuple[int, int]
    size: tuple[int, int]


@dataclass(frozen=True)
class Timing:
    """A line of the table."""

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
    """bytes beside the model, for the largest job"""

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
    """Every picture of (height, width) at every scale that leaves it any pixels."""
    jobs: list[TimedRender] = []
    for number, (size, scale) in enumerate(itertools.product(sizes, scales)):
        if min(lr := scale.lr_size(size)) > 0:
            jobs.append(TimedRender(number, scale, lr, scale.hr_size(lr)))
    if not jobs:
        raise SRNOError("every picture is too small for every one of the --scales")
    return jobs


def bench(
    models: Sequence[str],
    jobs: Sequence[TimedRender],
    *,
    repeats: int = 3,
    memory: int | None = None,
    device: str = "cpu",
    report: Report,
) -> list[Timing]:
    """Time presets (with random weights) and checkpoints in all their forms."""
    loaded = [(name, load_or_build(name, device)) for name in dict.fromkeys(models)]
    contenders = [Contender(name, form, model) for name, model in loaded for form in forms_of(model.config)]
    for contender in contenders:
        if not any(contender.can(job.scale) for job in jobs):
            raise SRNOError(f"{contender.name} cannot do any of the --scales; it is for one factor alone")
    best = interleaved_minimum(contenders, jobs, repeats, memory, device, report)
    rows: list[Timing] = []
    for contender, seconds in zip(contenders, best, strict=True):
        taken = {job: value for job, value in zip(jobs, seconds, strict=True) if math.isfinite(value)}
        largest = max(taken, key=lambda job: math.prod(job.size) + math.prod(job.lr))
        peak = peak_memory(
            PeakJob(
                model=contender.name,
                form=contender.form,
                lr=largest.lr,
                size=largest.size,
                memory=memory,
                device=device,
                threads=torch.get_num_threads(),
            )
        )
        rows.append(_row(contender, taken, peak))
    return rows


def _row(contender: Contender, taken: Mapping[TimedRender, float], peak: int) -> Timing:
    cost = profile(contender.model.config).total
    scales = dict.fromkeys(job.scale for job in taken)
    return Timing(
        model=contender.name,
        form=contender.form,
        config=contender.model.config,
        parameters=cost.parameters,
        flops_paper=cost.flops_paper,
        seconds={scale: fmean(value for job, value in taken.items() if job.scale == scale) for scale in scales},
        pixel_seconds=sum(taken.values()) / sum(math.prod(job.size) for job in taken),
        peak=peak,
    )


def interleaved_minimum(
    contenders: Sequence[Contender],
    jobs: Sequence[TimedRender],
    repeats: int,
    memory: int | None,
    device: str,
    report: Report,
) -> list[list[float]]:
    """Seconds of each contender for each job, the least of several rounds; infinite where it cannot do it.

    All contenders take turns at every job, in another order each round, so that what else the machine does meets all.
    """
    best = [[math.inf] * len(jobs) for _ in contenders]
    total, done = repeats * len(jobs) * len(contenders), 0
    for turn in range(repeats):
        for number, job in enumerate(jobs):
            image = torch.rand(3, *job.lr, device=device) * 2 - 1
            for place in range(len(contenders)):
                who = (place + turn + number) % len(contenders)
                contender = contenders[who]
                if contender.can(job.scale):
                    taken = _time(contender, image, job.size, memory)
                    best[who][number] = min(best[who][number], taken)
                done += 1
                report(done, total, f"{contender.name} {contender.form} ×{job.scale}")
    return best


def _time(contender: Contender, image: Tensor, size: tuple[int, int], memory: int | None) -> float:
    start = time.perf_counter()
    picture = render_form(contender.model, contender.form, image, size, memory)
    picture[0, 0, 0].item()  # waits for a GPU
    return time.perf_counter() - start
