"""Training time, progress through the budget, and the rate."""

import math
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from srno.errors import SRNOError
from srno.training.config import BUDGETS, TrainConfig
from srno.training.learner import Position

CLOCK_INTERVAL = 0.5
"""Seconds between two readings of the clock."""
LONGEST_COUNTED_INTERVAL = 4 * CLOCK_INTERVAL
"""Seconds counted between two readings, at most: in a longer gap the process or the machine was suspended."""


class Clock:
    """Counts seconds of training over all processes of a run, without breaks and without suspended time.

    A thread reads the clock at a short interval, since steps may be long: only the gaps between its readings
    distinguish a suspended process from a slow step.
    """

    def __init__(self, before: float = 0.0) -> None:
        self._counted = before
        self._last = time.monotonic()
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="srno-clock", daemon=True)

    def __enter__(self) -> Self:
        self._last = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def seconds(self) -> float:
        """Seconds so far."""
        with self._lock:
            now = time.monotonic()
            self._counted += min(now - self._last, LONGEST_COUNTED_INTERVAL)
            self._last = now
            return self._counted

    def _tick(self) -> None:
        while not self._end.wait(CLOCK_INTERVAL):
            self.seconds()


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The budget of a run: steps, samples or seconds, as its config says."""

    config: TrainConfig
    epoch_samples: int
    """Samples in an epoch."""
    clock: Clock

    def progress(self, position: Position) -> float:
        """Share of the budget that is used up; 1 means done."""
        config = self.config
        if config.steps is not None:
            return position.step / config.steps
        if config.epochs is not None:
            return position.sample / (config.epochs * self.epoch_samples)
        assert config.minutes is not None
        return self.clock.seconds() / (60 * config.minutes)

    def check_change(self, before: TrainConfig, position: Position) -> None:
        """Refuse a changed budget that is used up already: the run would end at once."""
        for name in BUDGETS:
            now = getattr(self.config, name)
            if now is not None and now != getattr(before, name) and self.progress(position) >= 1:
                reached = f"step {position.step}, sample {position.sample}, {self.clock.seconds() / 60:.1f} minutes"
                raise SRNOError(f"--{name} {now:g} is used up already: the run is at {reached}; give more")

    def rate_factor(self, position: Position) -> float:
        """The rate at this point, as a share of its peak."""
        if not self.config.rate_per_epoch:
            return rate_factor(self.config, self.progress(position))
        epoch = position.sample // self.epoch_samples
        if self.config.epochs is not None:
            return rate_factor(self.config, epoch / self.config.epochs)
        assert self.config.steps is not None
        return rate_factor(
            self.config, epoch * self.epoch_samples / (self.config.steps * self.config.stage_at(0).batch)
        )


def rate_factor(config: TrainConfig, progress: float) -> float:
    """Linear warm-up, a constant part, then a decay to zero; or, after the warm-up, a rate that is halved in steps."""
    if progress < config.warmup:
        return config.warmup_from + (1 - config.warmup_from) * progress / config.warmup
    if config.decay == "step":
        return 0.5 ** sum(progress >= share for share in config.halve_at)
    flat_until = config.warmup + config.constant
    if progress <= flat_until or flat_until >= 1:
        return 1.0
    left = max(0.0, 1 - (progress - flat_until) / (1 - flat_until))
    return left if config.decay == "linear" else 0.5 * (1 - math.cos(math.pi * left))
