"""What one sees while work goes on: bars on a terminal, and lines, all on standard error."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as RemainingColumn
from rich.table import Column


class View:
    """Bars and lines on standard error. Where that is no terminal, or with `bars` off, only the lines remain."""

    def __init__(self, *, bars: bool = True) -> None:
        self.console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self.live = bars and self.console.is_terminal
        """Whether bars are seen."""
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

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(" ".join(text.splitlines()))

    def add(self, text: str, total: float | None = 1.0) -> TaskID:
        """Add a bar."""
        return self._bars.add_task(text, total=total)

    def update(self, bar: TaskID, done: float, *, text: str | None = None, total: float | None = None) -> None:
        """Move a bar, and rename it or change its length."""
        self._bars.update(bar, completed=done, description=text, total=total)

    def remove(self, bar: TaskID) -> None:
        """Take a bar away."""
        self._bars.remove_task(bar)
