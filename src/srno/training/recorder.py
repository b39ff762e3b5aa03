"""Checkpoints, validations and reports of a run. Neither a full disk nor an unreadable picture ends the run."""

import copy
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from srno.checkpoints.native import Card
from srno.config import ModelConfig
from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet, load_pair, reason_to_skip
from srno.evaluation.evaluate import bicubic, evaluate
from srno.evaluation.protocols import Protocol, Scale, named_protocol
from srno.operator.model import Model
from srno.training.config import TrainConfig
from srno.training.feed import Pictures, first_patches
from srno.training.learner import Learner
from srno.training.revive import dead_units
from srno.training.run import Run
from srno.training.schedule import Clock
from srno.training.stages import Stage
from srno.upscaling.upscaler import Upscaler

FIRST_CHECKPOINT_SECONDS = 15.0
"""Seconds from the start to the first checkpoint and the first validation, at most."""
DEAD_UNIT_PATCHES = 64
"""Number of patches on which a unit must always be zero to count as dead."""
DEAD_UNIT_PATCH_SIDE = 48
"""Side of these patches in pixels, at most."""
VALIDATION_TIME_SHARE = 0.1
"""Largest share of the time for validations; otherwise they could take most of it on a slow machine."""

PHOTO_QUALITY = 75
"""JPEG quality of the low-resolution pictures that validate a run with the degradation photo."""

ReportEvent = Callable[[dict[str, Any]], None]
"""Called with each event of a run: {"event": "step" | "validation" | "note" | …, …}."""


class Recorder:
    """Reports each step; validates and saves when due."""

    def __init__(
        self, config: TrainConfig, run: Run, learner: Learner, clock: Clock, pictures: Pictures, report: ReportEvent
    ) -> None:
        self.config, self.run, self.learner, self.clock, self.report = config, run, learner, clock, report
        self.pictures = pictures.held_out
        self.patches = first_patches(pictures, config, DEAD_UNIT_PATCHES)[
            ..., :DEAD_UNIT_PATCH_SIDE, :DEAD_UNIT_PATCH_SIDE
        ]
        self.warned_of_dead_blocks = False
        self.protocol = protocol_of(config)
        self.averaged = copy.deepcopy(learner.model).eval()
        self.results: dict[str, float] = {}
        self.last_step = time.monotonic()
        self.next_save = self.last_step + min(FIRST_CHECKPOINT_SECONDS, 60 * config.checkpoint_minutes)
        self.next_validation = self.last_step + _first_validation(config)

    def begin(self, *, resumed: bool) -> None:
        """Report a resumption; a new run saves its first state, so that a rollback always finds one."""
        if resumed:
            self._event("resume")
        else:
            self.save()

    def after_step(self, stage: Stage, **values: float) -> None:
        """Report a step; validate and save if due. A save follows each validation."""
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
        """Save first, since a process that is asked to stop may soon be killed; validate if the run is done."""
        saved = self.save()
        if done:
            self.validate()
            saved = self.save()
        self._event("done" if done else "stopped")
        if not saved:
            raise SRNOError(
                f"the end of the run could not be saved; free disk space and continue with --resume {self.run.folder}"
            )

    def validate(self) -> None:
        """Score the averaged weights; save them as `best` if they have the best score."""
        started = time.monotonic()
        if self.pictures is not None:
            try:
                self._validate(self.pictures)
            except (SRNOError, OSError) as error:
                self._note(f"validation failed: {error}; training continues")
        now = time.monotonic()
        self.next_validation = now + max(
            60 * self.config.validate_minutes, (now - started) * (1 / VALIDATION_TIME_SHARE - 1)
        )

    def _validate(self, pictures: PictureSet) -> None:
        position = self.learner.position
        self.averaged.load_state_dict(self.learner.average.weights)
        self.results = validate(self.averaged, pictures, self.protocol)
        dead = dead_units(self.averaged.encoder, self.patches.to(next(self.averaged.parameters()).device))
        self._event("validation", **self.results, **({"dead": sum(map(len, dead))} if dead else {}))
        self._warn_of_dead_blocks([len(units) for units in dead])
        if self.results["mean"] > position.best:
            position.best = self.results["mean"]
            self._write_weights("best")
        draw_crops(self.averaged, pictures, self.protocol, self.run.folder / "crops" / f"{position.step:07d}.png")

    def _warn_of_dead_blocks(self, dead: list[int]) -> None:
        """Report dead blocks of the encoder once: neither loss nor PSNR shows them."""
        channels = self.learner.model.config.encoder.channels
        dead_blocks = [str(number) for number, count in enumerate(dead, start=1) if count == channels]
        if dead_blocks and not self.warned_of_dead_blocks:
            self.warned_of_dead_blocks = True
            self._note(
                f"encoder blocks {', '.join(dead_blocks)} of {len(dead)} are dead; restart them in a new run with "
                f"--init {self.run.folder / 'last.safetensors'} --revive and a lower --rate"
            )

    def save(self) -> bool:
        """Write state and weights; returns whether that succeeded."""
        try:
            self._write_weights("last")
            if self.learner.position.best == -math.inf:  # not validated yet
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
        self.report({"event": kind, "step": self.learner.position.step, **values, "seconds": self.clock.seconds()})

    def _note(self, text: str) -> None:
        self.report({"event": "note", "text": text})


def _first_validation(config: TrainConfig) -> float:
    """Seconds to the first validation; a run shorter than the interval is validated at its end only."""
    seconds = 60 * config.validate_minutes
    short = config.minutes is not None and config.minutes < config.validate_minutes
    return seconds if short else min(FIRST_CHECKPOINT_SECONDS, seconds)


def scales_of(config: ModelConfig) -> tuple[Scale, ...]:
    """Validation scales: the published factors, or the only factor of the model."""
    factors = (2, 3, 4) if config.only_scale is None else (config.only_scale,)
    return tuple(Scale(factor, factor) for factor in factors)


def protocol_of(config: TrainConfig) -> Protocol:
    """The protocol of a run's validations; what is trained on degraded pictures is validated on such."""
    jpeg = PHOTO_QUALITY if config.degradation == "photo" else None
    return named_protocol("benchmark", max_pixels=config.validation_pixels, jpeg=jpeg)


def validate(model: Model, pictures: PictureSet, protocol: Protocol) -> dict[str, float]:
    """Mean PSNR by scale, and their mean."""
    upscale = _exact_upscaler(model).array
    scores = evaluate(upscale, pictures, scales_of(model.config), protocol, model="validation").mean
    by_scale = {f"x{scale}": score.psnr for scale, score in scores.items()}
    return by_scale | {"mean": float(np.mean(list(by_scale.values())))}


def draw_crops(model: Model, pictures: PictureSet, protocol: Protocol, path: Path, *, count: int = 4) -> None:
    """Save rows of bicubic, model and ground truth at the largest factor as a picture."""
    scale = scales_of(model.config)[-1]
    large = [picture for picture in pictures.pictures if reason_to_skip(picture, scale, protocol) is None]
    rows: list[NDArray[np.uint8]] = []
    for picture in large[:count]:
        lr, hr = (pixels.astype(np.float32) / np.float32(255) for pixels in load_pair(picture, scale, protocol))
        size = (hr.shape[0], hr.shape[1])
        arguments: dict[str, Any] = {"size": size, "scale": (scale.y, scale.x), "cell_clip": True}
        rows.append(_join_centre_squares([bicubic(lr, **arguments), _exact_upscaler(model).array(lr, **arguments), hr]))
    if rows:
        path.parent.mkdir(parents=True, exist_ok=True)
        width = min(row.shape[1] for row in rows)
        Image.fromarray(np.concatenate([row[:, :width] for row in rows])).save(path)


def _exact_upscaler(model: Model) -> Upscaler:
    return Upscaler(model=model, integral="exact", precision="fp32")


def _join_centre_squares(pictures: Sequence[NDArray[np.float32]]) -> NDArray[np.uint8]:
    """Equal centre squares side by side, as bytes."""
    side = min(128, *pictures[0].shape[:2])
    top, left = (pictures[0].shape[0] - side) // 2, (pictures[0].shape[1] - side) // 2
    cut = [picture[top : top + side, left : left + side] for picture in pictures]
    return (np.concatenate(cut, axis=1).clip(0, 1) * 255 + 0.5).astype(np.uint8)
