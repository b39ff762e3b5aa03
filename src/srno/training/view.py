"""Watching a run: a live table on a terminal, plain lines elsewhere, and TensorBoard for those who want it."""

import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from srno.errors import require

Event = dict[str, Any]

MEMORY = 0.95
"""Of the loss that is shown."""
LINE_EVERY = 60.0
"""Seconds between the lines on steps where there is no live table."""


class View:
    """Shows the events of a run on stderr."""

    def __init__(self, title: str, console: Console) -> None:
        self.title, self.console = title, console
        self.progress, self.numbers = 0.0, dict[str, str]()
        self.start: Event | None = None
        """The first step since this process began."""
        self.loss = math.nan
        """Its running mean: single steps tell little."""
        self.next_line = 0.0
        self.live = Live(self._table(), console=console, refresh_per_second=2) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        match event["event"]:
            case "reading":
                self.numbers["reading pictures"] = f"{event['done']} of {event['of']}"
                if not self.live and event["done"] == 1:
                    self._say(f"reading {event['of']} pictures, which is done once")
            case "step":
                self._step(event)
            case "validation":
                scores = "  ".join(f"{name} {event[name]:.3f}" for name in event if name[0] == "x" or name == "mean")
                self.numbers["validation, dB"] = scores
                self._say(f"step {event['step']}, {_time(event['seconds'])}: {scores} dB")
            case "skipped":
                self._say(f"left out {event['path']}: {event['reason']}")
            case "resume":
                self._say(f"going on from step {event['step']}, {_time(event['seconds'])}")
            case "rollback":
                self._say(f"{event['bad_steps']} bad steps in a row: back to the state of step {event['step']}")
            case "note":
                self._say(event["text"])
            case kind:
                self.progress = 1.0 if kind == "done" else self.progress
                self._say(f"{kind} after {event['step']} steps, {_time(event['seconds'])}")
        if self.live:
            self.live.update(self._table())

    def _step(self, event: Event) -> None:
        self.start = self.start or event
        self.progress = min(1.0, event["progress"])
        self.numbers.pop("reading pictures", None)
        self.numbers["step"] = f"{event['step']:,}"
        self.loss = event["loss"] if math.isnan(self.loss) else MEMORY * self.loss + (1 - MEMORY) * event["loss"]
        self.numbers["loss"] = f"{self.loss:.4f}"
        self.numbers["rate"] = f"{100 * event['rate']:.0f} % of peak"
        self.numbers["LR pixels/s"] = f"{event['pixels']:,}"
        self.numbers["time"] = f"{_time(event['seconds'])}, {self._left(event)}"
        if not self.live and event["seconds"] >= self.next_line:
            self.next_line = event["seconds"] + LINE_EVERY
            self._say(", ".join(f"{name} {value}" for name, value in self.numbers.items()))

    def _left(self, event: Event) -> str:
        """Time to go, from the pace since this process began."""
        assert self.start is not None
        gained, seconds = event["progress"] - self.start["progress"], event["seconds"] - self.start["seconds"]
        if gained <= 0:
            return "…"
        return f"{_time(max(0.0, 1 - event['progress']) * seconds / gained)} to go"

    def _table(self) -> Table:
        head = Table.grid(padding=(0, 2))
        head.add_row(self.title, ProgressBar(total=1.0, completed=self.progress, width=40), f"{self.progress:.1%}")
        numbers = Table.grid(padding=(0, 2))
        for name, value in self.numbers.items():
            numbers.add_row(name, value)
        whole = Table.grid()
        whole.add_row(head)
        whole.add_row(numbers)
        return whole

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)


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
