"""How far a run is, and the rate there."""

import math
import time
from dataclasses import dataclass

from srno.training.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The clock of a run: samples, steps or seconds, whichever its budget counts."""

    config: TrainConfig
    epoch_samples: int
    """Samples in an epoch."""
    seconds_before: float = 0.0
    """Seconds that earlier parts of a resumed run took."""
    started: float

    def seconds(self) -> float:
        """Seconds of this run so far, pauses between its parts left out."""
        return self.seconds_before + time.monotonic() - self.started

    def progress(self, step: int, sample: int) -> float:
        """Share of the budget that is used up; 1 means done."""
        config = self.config
        if config.steps is not None:
            return step / config.steps
        if config.epochs is not None:
            return sample / (config.epochs * self.epoch_samples)
        assert config.minutes is not None
        return self.seconds() / (60 * config.minutes)

    def rate_factor(self, step: int, sample: int) -> float:
        """The rate at this point, as a share of its peak."""
        progress = self.progress(step, sample)
        if self.config.rate_per_epoch and self.config.epochs is not None:
            progress = (sample // self.epoch_samples) / self.config.epochs
        return rate_factor(self.config, progress)


def rate_factor(config: TrainConfig, progress: float) -> float:
    """Linear warm-up, a constant part, then a fall to zero."""
    if progress < config.warmup:
        return config.warmup_from + (1 - config.warmup_from) * progress / config.warmup
    flat_until = config.warmup + config.constant
    if progress <= flat_until:
        return 1.0
    left = max(0.0, 1 - (progress - flat_until) / (1 - flat_until))
    return left if config.decay == "linear" else 0.5 * (1 - math.cos(math.pi * left))
