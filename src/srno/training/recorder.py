"""What a run leaves on disk and tells while it goes on. No disk that is full, and no picture, can end the run."""

import copy
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from srno.checkpoints.native import Card
from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet
from srno.training.config import TrainConfig
from srno.training.feed import Pictures, first_patches
from srno.training.learner import Learner
from srno.training.revive import dead_units
from srno.training.run import Run
from srno.training.schedule import Clock
from srno.training.stages import Stage
from srno.training.validation import draw_crops, protocol_of, validate

FIRST = 15.0
"""Seconds after the start at which a run is first validated and saved."""
DEAD_UNIT_PATCHES = 64
"""Patches to which a unit must answer once not to be called dead."""
DEAD_UNIT_PATCH_SIDE = 48
"""Pixels of them, along each side."""
VALIDATION_TIME_SHARE = 0.1
"""Share of the time that validations may take, so that a slow machine or a short budget is not spent on them."""

Tell = Callable[[dict[str, Any]], None]
"""Hears of every event of a run: {"event": "step" | "validation" | "note" | …, …}."""


class Recorder:
    """Validates and saves when it is time to."""

    def __init__(
        self, config: TrainConfig, run: Run, learner: Learner, clock: Clock, pictures: Pictures, tell: Tell
    ) -> None:
        self.config, self.run, self.learner, self.clock, self.tell = config, run, learner, clock, tell
        self.pictures = pictures.held_out
        self.patches = first_patches(pictures, config, DEAD_UNIT_PATCHES)[
            ..., :DEAD_UNIT_PATCH_SIDE, :DEAD_UNIT_PATCH_SIDE
        ]
        self.warned_of_dead_blocks = False
        self.protocol = protocol_of(config)
        self.shadow = copy.deepcopy(learner.model).eval()
        self.results: dict[str, float] = {}
        self.last_step = time.monotonic()
        self.next_save = self.last_step + min(FIRST, 60 * config.checkpoint_minutes)
        self.next_validation = self.last_step + _first_validation(config)

    def begin(self, *, resumed: bool) -> None:
        """Say where the run stands; a new one leaves its first state, so that there is something to go back to."""
        if resumed:
            self._event("resume")
        else:
            self.save()

    def after_step(self, stage: Stage, **values: float) -> None:
        """Tell of a step; validate and save if it is time. Whatever was validated is saved."""
        now = time.monotonic()
        pixels = round(stage.batch * stage.patch**2 / (now - self.last_step))
        self._event("step", sample=self.learner.position.sample, **values, pixels=pixels)
        validation_due, save_due = now >= self.next_validation, now >= self.next_save
        if validation_due:
            self.validate()
        if validation_due or save_due:
            self.save()
        self.last_step = time.monotonic()

    def end(self, *, done: bool) -> None:
        """Save first: whoever asked the run to stop may not wait for more."""
        saved = self.save()
        if done:
            self.validate()
            saved = self.save()
        self._event("done" if done else "stopped")
        if not saved:
            raise SRNOError(
                f"the end of the run could not be saved; make room and go on with --resume {self.run.folder}"
            )

    def validate(self) -> None:
        """Score the averaged weights; keep them as `best` if they are."""
        begun = time.monotonic()
        if self.pictures is not None:
            try:
                self._validate(self.pictures)
            except (SRNOError, OSError) as error:
                self._note(f"no validation: {error}; training goes on")
        now = time.monotonic()
        self.next_validation = now + max(
            60 * self.config.validate_minutes, (now - begun) * (1 / VALIDATION_TIME_SHARE - 1)
        )

    def _validate(self, pictures: PictureSet) -> None:
        position = self.learner.position
        self.shadow.load_state_dict(self.learner.average.weights)
        self.results = validate(self.shadow, pictures, self.protocol)
        dead = dead_units(self.shadow.encoder, self.patches.to(next(self.shadow.parameters()).device))
        self._event("validation", **self.results, **({"dead": sum(map(len, dead))} if dead else {}))
        self._warn_of_dead_blocks([len(units) for units in dead])
        if self.results["mean"] > position.best:
            position.best = self.results["mean"]
            self._write_weights("best")
        draw_crops(self.shadow, pictures, self.protocol, self.run.folder / "crops" / f"{position.step:07d}.png")

    def _warn_of_dead_blocks(self, dead: list[int]) -> None:
        """Once, when whole blocks of the encoder are lost: neither loss nor PSNR would tell."""
        channels = self.learner.model.config.encoder.channels
        lost = [str(number) for number, count in enumerate(dead, start=1) if count == channels]
        if lost and not self.warned_of_dead_blocks:
            self.warned_of_dead_blocks = True
            self._note(
                f"block {', '.join(lost)} of the encoder's {len(dead)} answers nothing any more; restart such blocks "
                f"in a new run: --init {self.run.folder / 'last.safetensors'} --revive, with a lower --rate"
            )

    def save(self) -> bool:
        """Write state and weights; returns whether that was possible."""
        try:
            self._write_weights("last")
            if self.learner.position.best == -math.inf:  # nothing to select by, or not yet
                self._write_weights("best")
            self.run.save_state(self.learner.state(self.clock.seconds()))
        except (SRNOError, OSError) as error:
            self._note(f"could not save: {error}; the last checkpoint is kept")
            return False
        finally:
            self.next_save = time.monotonic() + 60 * self.config.checkpoint_minutes
        return True

    def _write_weights(self, which: str) -> None:
        position, hours = self.learner.position, self.clock.seconds() / 3600
        steps = f"{position.step} steps, {position.sample} samples, {hours:.2f} hours, {self.config.precision}"
        card = Card(
            name=f"{self.config.preset}, {position.step} steps",
            data=", ".join(Path(folder).resolve().name for folder in self.config.data),
            recipe=steps,
            results={"validation": {"protocol": str(self.protocol), **self.results}} if self.results else {},
        )
        self.run.save_weights(which, self.learner.model.config, self.learner.average.weights, card)

    def _event(self, kind: str, **values: Any) -> None:
        self.tell({"event": kind, "step": self.learner.position.step, **values, "seconds": self.clock.seconds()})

    def _note(self, text: str) -> None:
        self.tell({"event": "note", "text": text})


def _first_validation(config: TrainConfig) -> float:
    """Seconds from the start; a run shorter than the time between two is validated at its end only."""
    seconds = 60 * config.validate_minutes
    return seconds if config.minutes is not None and config.minutes < config.validate_minutes else min(FIRST, seconds)
