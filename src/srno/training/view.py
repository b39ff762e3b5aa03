"""Watching a run: a live table on a terminal, plain lines elsewhere, and TensorBoard for those who want it."""

import math
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from srno.errors import require

Event = dict[str, Any]


class View:
    """Shows the events of a run on stderr."""

    def __init__(self, title: str, console: Console) -> None:
        self.title, self.console = title, console
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self.task = self.bar.add_task(title, total=1.0)
        self.numbers: dict[str, str] = {}
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
            case "step":
                self._step(event)
            case "validation":
                scores = "  ".join(f"{name} {event[name]:.3f}" for name in event if name[0] == "x" or name == "mean")
                self.numbers["validation, dB"] = scores
                self._say(f"step {event['step']}, {event['seconds'] / 60:.1f} min: {scores} dB")
            case "skipped":
                self._say(f"left out {event['path']}: {event['reason']}")
            case "resume":
                self._say(f"going on from step {event['step']} ({event['seconds'] / 60:.1f} min)")
            case "note":
                self._say(event["text"])
            case kind:
                self._say(f"{kind} after {event['step']} steps, {event['seconds'] / 60:.1f} minutes")
        if self.live:
            self.live.update(self._table())

    def _step(self, event: Event) -> None:
        self.bar.update(self.task, completed=min(1.0, event["progress"]))
        self.numbers["step"] = f"{event['step']:,}"
        self.numbers["loss"] = f"{event['loss']:.4f}  ({-20 * math.log10(max(event['loss'], 1e-9) / 2):.1f} dB by L1)"
        self.numbers["rate"] = f"{100 * event['rate']:.0f} % of peak"
        self.numbers["LR pixels/s"] = f"{event['pixels']:,}"

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for name, value in self.numbers.items():
            table.add_row(name, value)
        whole = Table.grid()
        whole.add_row(self.bar)
        whole.add_row(table)
        return whole

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)


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
