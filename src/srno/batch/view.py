"""What one sees while pictures are made: bars on a terminal, and lines for what matters, all on standard error."""

from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from srno.batch.jobs import Batch, Job
from srno.batch.run import Outcome
from srno.inference.sizes import Size, Target

NAMES = 5
"""Files that a line names at most."""


class View:
    """Watches a batch: with `bars` on a terminal, with `verbose` a line or two for every picture anywhere."""

    def __init__(self, batch: Batch, *, bars: bool, verbose: bool) -> None:
        self.console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self.batch, self.verbose = batch, verbose
        self.watched = bars and self.console.is_terminal
        self.single = len(batch.jobs) == 1
        self.bars = Progress(
            TextColumn(
                "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", max_width=48)
            ),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=self.console,
            disable=not self.watched,
            transient=True,
        )
        self.work = sum(_pixels(job) for job in batch.jobs)
        self.done = self.weight = 0
        """Pixels that are finished, and those of the current picture."""
        self.title = ""
        self.counts = Counter[str]()
        self.overall: TaskID | None = None
        self.current: TaskID | None = None

    def __enter__(self) -> Self:
        if self.watched or self.verbose:
            self._introduce()
        self.bars.start()
        if not self.single:
            self.overall = self.bars.add_task(self._tally(), total=max(self.work, 1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.bars.stop()
        several = len(self.batch.jobs) + len(self.batch.skipped) > 1
        if several and (self.watched or self.verbose or self.counts["failed"]):
            self.say(", ".join(f"{count} {status}" for status, count in self.counts.items()) or "nothing done")

    def begin(self, job: Job, target: Target) -> None:
        """A picture has been read, and its size is certain."""
        if self.verbose or (self.watched and self.single):
            output = job.output or "standard output"
            self.say(f"{job.source.name} {_size(target.source)} → {output} {_size(target.size)}")
        self.weight = _pixels(job)
        self.title = f"{job.source.relative.name} → {_size(target.size)}"
        self.current = self.bars.add_task(self.title, total=1.0)

    def advance(self, share: float) -> None:
        """So much of the current picture is done."""
        if self.current is not None:
            # A large file takes a while to compress.
            self.bars.update(
                self.current, completed=share, description=self.title + (", writing" if share >= 1 else "")
            )
        if self.overall is not None:
            self.bars.update(self.overall, completed=self.done + share * self.weight)

    def end(self, job: Job, outcome: Outcome) -> None:
        """A picture is written, there already, or lost."""
        self.counts[outcome.status] += 1
        if self.current is not None:
            self.bars.remove_task(self.current)
            self.current = None
        if outcome.status != "skipped":
            self.done += _pixels(job)
        if self.overall is not None:
            self.bars.update(self.overall, completed=self.done, description=self._tally())
        self._report(outcome)

    def say(self, text: str) -> None:
        """A line above the bars."""
        self.console.print(" ".join(text.splitlines()))

    def _report(self, outcome: Outcome) -> None:
        for line in (*outcome.notes, *((outcome.error,) if outcome.error else ())):
            self.say(f"srno: {outcome.input}: {line}")
        if outcome.status == "written" and (self.verbose or (self.watched and self.single)):
            memory = f", {outcome.peak_mb:,.0f} MB at most" if self.verbose and outcome.peak_mb else ""
            self.say(f"{outcome.output} written in {outcome.seconds:.1f} s{memory}")
        elif outcome.status == "skipped" and self.verbose:
            self.say(f"{outcome.output} is there already")

    def _introduce(self) -> None:
        left_out = self.batch.left_out
        if left_out:
            names = ", ".join(source.relative.name for source in left_out[:NAMES])
            more = "" if len(left_out) <= NAMES else " …"
            self.say(f"left out as results of an earlier run: {names}{more}; with -o FOLDER they would be enlarged too")
        if not self.single:
            self.say(f"{len(self.batch.jobs)} pictures, {self.work / 1e6:,.1f} megapixels to make")

    def _tally(self) -> str:
        finished = self.counts["written"] + self.counts["failed"]
        failed = f", {self.counts['failed']} failed" if self.counts["failed"] else ""
        return f"{finished} of {len(self.batch.jobs)} pictures{failed}"


def _pixels(job: Job) -> int:
    return 0 if job.target is None else job.target.whole[0] * job.target.whole[1]


def _size(size: Size) -> str:
    return f"{size[0]}×{size[1]}"
