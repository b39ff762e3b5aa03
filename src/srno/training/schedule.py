"""How far a run is, and the rate there."""

import math
from dataclasses import dataclass

from srno.errors import SRNOError
from srno.training.clock import Clock
from srno.training.config import BUDGETS, TrainConfig
from srno.training.learner import Position


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a run may use up: steps, samples or seconds, whichever its config counts."""

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
        """Refuse a budget that was given anew and is used up already: the run would end without a word."""
        for name in BUDGETS:
            now = getattr(self.config, name)
            if now is not None and now != getattr(before, name) and self.progress(position) >= 1:
                stands = f"step {position.step}, sample {position.sample}, {self.clock.seconds() / 60:.1f} minutes"
                raise SRNOError(f"--{name} {now:g} is used up already: the run stands at {stands}; give more")

    def rate_factor(self, position: Position) -> float:
        """The rate at this point, as a share of its peak."""
        progress = self.progress(position)
        if self.config.rate_per_epoch and self.config.epochs is not None:
            progress = (position.sample // self.epoch_samples) / self.config.epochs
        return rate_factor(self.config, progress)


def rate_factor(config: TrainConfig, progress: float) -> float:
    """Linear warm-up, a constant part, then a fall to zero."""
    if progress < config.warmup:
        return config.warmup_from + (1 - config.warmup_from) * progress / config.warmup
    flat_until = config.warmup + config.constant
    if progress <= flat_until or flat_until >= 1:
        return 1.0
    left = max(0.0, 1 - (progress - flat_until) / (1 - flat_until))
    return left if config.decay == "linear" else 0.5 * (1 - math.cos(math.pi * left))
