"""Watching a run: a bar on a terminal, lines elsewhere, and TensorBoard for those who want it."""

import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.progress import TaskID

from srno.errors import require
from srno.view import View

Event = dict[str, Any]

LOSS_MEMORY = 0.95
"""Of the running mean that is shown."""
SECONDS_BETWEEN_LINES = 60.0
"""Between the lines about steps where there is no bar."""


class RunView:
    """Shows the events of a run on standard error."""

    def __init__(self, title: str) -> None:
        self.title, self.view = title, View()
        self.numbers = dict[str, str]()
        self.start: Event | None = None
        """The first step since this process began."""
        self.loss = math.nan
        """Its running mean: single steps are noisy."""
        self.next_line = 0.0
        self.bar: TaskID | None = None

    def __enter__(self) -> Self:
        self.view.__enter__()
        self.bar = self.view.add(self.title)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.view.__exit__(kind, error, at)

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        match event["event"]:
            case "reading":
                self._move(0, f"reading pictures, {event['done']} of {event['of']}")
                if not self.view.live and event["done"] == 1:
                    self.view.say(f"reading {event['of']} pictures, which is done once")
            case "step":
                self._step(event)
            case "validation":
                scores = "  ".join(f"{name} {event[name]:.3f}" for name in event if name[0] == "x" or name == "mean")
                self.numbers["validation"] = f"{event['mean']:.3f} dB"
                self.view.say(f"step {event['step']}, {_time(event['seconds'])}: {scores} dB{_dead(event)}")
            case "skipped":
                self.view.say(f"left out {event['path']}: {event['reason']}")
            case "resume":
                self.view.say(f"resuming at step {event['step']}, {_time(event['seconds'])}")
            case "rollback":
                self.view.say(f"{event['bad_steps']} bad steps in a row: back to the state of step {event['step']}")
            case "note":
                self.view.say(event["text"])
            case kind:
                self.view.say(f"{kind} after {event['step']} steps, {_time(event['seconds'])}")

    def _step(self, event: Event) -> None:
        self.start = self.start or event
        self.loss = (
            event["loss"] if math.isnan(self.loss) else LOSS_MEMORY * self.loss + (1 - LOSS_MEMORY) * event["loss"]
        )
        self.numbers["step"] = f"{event['step']:,}"
        self.numbers["loss"] = f"{self.loss:.4f}"
        self.numbers["rate"] = f"{100 * event['rate']:.0f} % of peak"
        self.numbers["LR pixels/s"] = f"{event['pixels']:,}"
        text = ", ".join(f"{name} {value}" for name, value in self.numbers.items())
        self._move(min(1.0, event["progress"]), text)
        if not self.view.live and event["seconds"] >= self.next_line:
            self.next_line = event["seconds"] + SECONDS_BETWEEN_LINES
            self.view.say(f"{text}, {_time(event['seconds'])}, {self._left(event)}")

    def _move(self, share: float, text: str) -> None:
        if self.bar is not None:
            self.view.update(self.bar, share, text=f"{self.title}: {text}")

    def _left(self, event: Event) -> str:
        """Time that is left, from the pace since this process began."""
        assert self.start is not None
        gained, seconds = event["progress"] - self.start["progress"], event["seconds"] - self.start["seconds"]
        if gained <= 0:
            return "…"
        return f"{_time(max(0.0, 1 - event['progress']) * seconds / gained)} left"


def _dead(event: Event) -> str:
    return f", {event['dead']} dead units" if event.get("dead") else ""


def _time(seconds: float) -> str:
    """1:02:03"""
    return str(timedelta(seconds=round(seconds)))


def tensorboard_writer(folder: Path) -> Callable[[Event], None]:
    """Hears events and writes them for TensorBoard."""
    writer = require("torch.utils.tensorboard", "tensorboard").SummaryWriter(str(folder / "tensorboard"))

    def tell(event: Event) -> None:
        if event["event"] in ("step", "validation"):
            for name, value in event.items():
                if isinstance(value, int | float) and name not in ("step", "seconds"):
                    writer.add_scalar(f"{event['event']}/{name}", value, event["step"])
        else:
            writer.flush()

    return tell
