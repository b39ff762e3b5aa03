"""Progress of a run: a bar on a terminal, lines elsewhere, and TensorBoard events."""

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

LOSS_AVERAGE_DECAY = 0.95
"""Decay of the running mean of the loss that is shown."""
SECONDS_BETWEEN_LINES = 60.0
"""Seconds between the lines about steps if there is no bar."""


class RunView:
    """Shows the events of a run on standard error."""

    def __init__(self, title: str) -> None:
        self.title, self.view = title, View()
        self.numbers = dict[str, str]()
        self.start: Event | None = None
        """The first step of this process."""
        self.loss = math.nan
        """Running mean of the loss, since single steps are noisy."""
        self.next_line = 0.0
        self.bar: TaskID | None = None

    def __enter__(self) -> Self:
        self.view.__enter__()
        self.bar = self.view.add(self.title)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.view.__exit__(kind, error, at)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event["event"]:
            case "reading":
                self._update_bar(0, f"reading pictures, {event['done']} of {event['of']}")
                if not self.view.live and event["done"] == 1:
                    self.view.print(f"reading {event['of']} pictures; later runs use the cache")
            case "step":
                self._step(event)
            case "validation":
                scores = "  ".join(f"{name} {event[name]:.3f}" for name in event if name[0] == "x" or name == "mean")
                self.numbers["validation"] = f"{event['mean']:.3f} dB"
                self.view.print(f"step {event['step']}, {_time(event['seconds'])}: {scores} dB{_dead(event)}")
            case "skipped":
                self.view.print(f"skipped {event['path']}: {event['reason']}")
            case "resume":
                self.view.print(f"resuming at step {event['step']}, {_time(event['seconds'])}")
            case "rollback":
                self.view.print(f"{event['bad_steps']} bad steps in a row: back to the state of step {event['step']}")
            case "note":
                self.view.print(event["text"])
            case kind:
                self.view.print(f"{kind} after {event['step']} steps, {_time(event['seconds'])}")

    def _step(self, event: Event) -> None:
        self.start = self.start or event
        decay = LOSS_AVERAGE_DECAY
        self.loss = event["loss"] if math.isnan(self.loss) else decay * self.loss + (1 - decay) * event["loss"]
        self.numbers["step"] = f"{event['step']:,}"
        self.numbers["loss"] = f"{self.loss:.4f}"
        self.numbers["rate"] = f"{100 * event['rate']:.0f} % of peak"
        self.numbers["LR pixels/s"] = f"{event['pixels']:,}"
        text = ", ".join(f"{name} {value}" for name, value in self.numbers.items())
        self._update_bar(min(1.0, event["progress"]), text)
        if not self.view.live and event["seconds"] >= self.next_line:
            self.next_line = event["seconds"] + SECONDS_BETWEEN_LINES
            self.view.print(f"{text}, {_time(event['seconds'])}, {self._left(event)}")

    def _update_bar(self, share: float, text: str) -> None:
        if self.bar is not None:
            self.view.update(self.bar, share, text=f"{self.title}: {text}")

    def _left(self, event: Event) -> str:
        """Time that is left, from the speed since this process started."""
        assert self.start is not None
        gained, seconds = event["progress"] - self.start["progress"], event["seconds"] - self.start["seconds"]
        if gained <= 0:
            return "…"
        return f"{_time(max(0.0, 1 - event['progress']) * seconds / gained)} left"


def _dead(event: Event) -> str:
    return f", {event['dead']} dead units" if event.get("dead") else ""


def _time(seconds: float) -> str:
    """Hours, minutes and seconds, such as 1:02:03."""
    return str(timedelta(seconds=round(seconds)))


def tensorboard_writer(folder: Path) -> Callable[[Event], None]:
    """Make a function that writes events for TensorBoard."""
    writer = require("torch.utils.tensorboard", "tensorboard").SummaryWriter(str(folder / "tensorboard"))

    def report(event: Event) -> None:
        if event["event"] in ("step", "validation"):
            for name, value in event.items():
                if isinstance(value, int | float) and name not in ("step", "seconds"):
                    writer.add_scalar(f"{event['event']}/{name}", value, event["step"])
        else:
            writer.flush()

    return report
