"""Progress bars and messages, all on standard error."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as RemainingColumn
from rich.table import Column


class View:
    """Progress bars and lines on standard error; only the lines if that is not a terminal or `bars` is off."""

    def __init__(self, *, bars: bool = True) -> None:
        self.console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self.live = bars and self.console.is_terminal
        """Whether bars are shown."""
        self._bars = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(overflow="ellipsis", no_wrap=True)),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            RemainingColumn(compact=True),
            TextColumn("left"),
            console=self.console,
            disable=not self.live,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bars.stop()

    def print(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(" ".join(text.splitlines()))

    def add(self, text: str, total: float | None = 1.0) -> TaskID:
        """Add a bar."""
        return self._bars.add_task(text, total=total)

    def update(self, bar: TaskID, done: float, *, text: str | None = None, total: float | None = None) -> None:
        """Set the progress of a bar, and optionally its text and its total."""
        self._bars.update(bar, completed=done, description=text, total=total)

    def remove(self, bar: TaskID) -> None:
        """Remove a bar."""
        self._bars.remove_task(bar)
