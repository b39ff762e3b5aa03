"""Progress display of a batch: bars, and lines for single pictures."""

import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.progress import TaskID

from srno.gigapixel.journal import Journal, journal_folder
from srno.gigapixel.passes import Status
from srno.upscaling.jobs import BatchPlan, Job
from srno.upscaling.outcome import Outcome
from srno.upscaling.sizes import Size, Target
from srno.upscaling.sources import Source
from srno.view import View

MAX_LISTED_NAMES = 5
"""Maximum number of file names in a line."""
SECONDS_BETWEEN_LINES = 30


class BatchView:
    """Displays a batch: with `bars` on a terminal, with `verbose` a line or two for every picture anywhere."""

    def __init__(self, plan: BatchPlan, *, bars: bool, verbose: bool) -> None:
        self.view = View(bars=bars)
        self.plan, self.verbose = plan, verbose
        self.single = len(plan.jobs) == 1
        self.pixels = sum(_pixels(job) for job in plan.jobs)
        self.done = 0
        """Pixels of the pictures that are finished, or computed and waiting to be written."""
        self.job: Job | None = None
        """The picture that is being computed."""
        self.title = ""
        self.lines = Lines(self.print)
        self.counts = Counter[str]()
        self.ended = set[Source]()
        """Those that are written, skipped or failed."""
        self.overall: TaskID | None = None
        self.current: TaskID | None = None

    def __enter__(self) -> Self:
        if self.view.live or self.verbose:
            self._print_plan()
        self.view.__enter__()
        if not self.single:
            self.overall = self.view.add(self._tally(), total=max(self.pixels, 1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.view.__exit__(kind, error, at)
        several = len(self.plan.jobs) + len(self.plan.skipped) > 1
        if several and (self.view.live or self.verbose or self.counts["failed"]):
            self.print(", ".join(f"{count} {status}" for status, count in self.counts.items()) or "nothing done")
        if kind is KeyboardInterrupt:
            raise KeyboardInterrupt(self._interrupted()) from None

    def begin(self, job: Job, target: Target) -> None:
        """Show a picture that has been read and whose size is known."""
        if self.verbose or (self.view.live and self.single):
            output = job.output or "standard output"
            self.print(f"{job.source.name} {_size(target.source)} → {output} {_size(target.size)}")
        self._leave_current()
        self.job = job
        self.title = f"{job.source.relative.name} → {_size(target.size)}"
        self.current = self.view.add(self.title)

    def advance(self, share: float) -> None:
        """Show that this share of the current picture is done."""
        if self.current is not None:
            # Compressing a large file takes a while.
            self.view.update(self.current, share, text=self.title + (", writing" if share >= 1 else ""))
        if self.overall is not None and self.job is not None:
            self.view.update(self.overall, self.done + share * _pixels(self.job))

    def stage(self, status: Status) -> None:
        """Show the pass and the tile of a picture that is made tile by tile."""
        if self.current is not None:
            self.view.update(self.current, status.share, text=f"{self.title}, {status}")
        if self.overall is not None and self.job is not None:
            self.view.update(self.overall, self.done + status.share * _pixels(self.job))
        if self.verbose and not self.view.live:
            self.lines(status)

    def end(self, job: Job, outcome: Outcome) -> None:
        """Show that a picture is written, skipped or failed."""
        self.counts[outcome.status] += 1
        self.ended.add(job.source)
        if job is self.job:
            self._leave_current()
        if self.overall is not None:
            self.view.update(self.overall, self.done, text=self._tally())
        self._report(outcome)

    def _leave_current(self) -> None:
        """Remove the bar of the current picture, whose result may still be written while the next is computed."""
        if self.current is not None:
            self.view.remove(self.current)
        self.done += 0 if self.job is None else _pixels(self.job)
        self.job = self.current = None

    def _interrupted(self) -> str:
        """Say how many pictures of several are done, and how to continue; empty if a single one starts again."""
        waiting = [job for job in self.plan.jobs if job.source not in self.ended]
        begun = any(job.output is not None and Journal.has_progress(journal_folder(job.output)) for job in waiting)
        if self.single:
            return ": what is done is kept; the same command with --resume continues" if begun else ""
        done = self.counts["written"] + self.counts["skipped"]
        of = len(self.plan.jobs) + len(self.plan.skipped)
        if any(job.overwrite for job in waiting):
            # Results of earlier runs cannot be told from new ones.
            advice = f"; the next is {waiting[0].source.name}, and the same command begins again"
        else:
            advice = f"; the same command with --skip-existing{' --resume' if begun else ''} continues"
        return f": {done} of {of} pictures are done{advice}"

    def print(self, text: str) -> None:
        """Print a line above the bars."""
        self.view.print(text)

    def _report(self, outcome: Outcome) -> None:
        for line in (*outcome.notes, *((outcome.error,) if outcome.error else ())):
            self.print(f"srno: {outcome.input}: {line}")
        if outcome.status == "written" and (self.verbose or (self.view.live and self.single)):
            self.print(f"{outcome.output} written in {outcome.seconds:.1f} s{self._details(outcome)}")
        elif outcome.status == "skipped" and self.verbose:
            self.print(f"{outcome.output} skipped: {outcome.reason}")

    def _details(self, outcome: Outcome) -> str:
        if not self.verbose:
            return ""
        points = f"{outcome.integral:,} points" if isinstance(outcome.integral, int) else outcome.integral
        method = f", {outcome.precision} products, integral from {points}" if outcome.precision else ""
        if outcome.clean:
            method += f", clean {outcome.clean:g}" + (f" for {outcome.compression}" if outcome.compression else "")
        memory = f", {outcome.peak_mb:,.0f} MB at most" if outcome.peak_mb else ""
        return method.replace("from exact", "exact") + memory

    def _print_plan(self) -> None:
        left_out = self.plan.left_out
        if left_out:
            names = ", ".join(source.relative.name for source in left_out[:MAX_LISTED_NAMES])
            more = "" if len(left_out) <= MAX_LISTED_NAMES else " …"
            self.print(f"left out as results of an earlier run: {names}{more}; with -o FOLDER they are enlarged too")
        if not self.single:
            self.print(f"{len(self.plan.jobs)} pictures, {self.pixels / 1e6:,.1f} megapixels to make")

    def _tally(self) -> str:
        finished = self.counts["written"] + self.counts["failed"]
        failed = f", {self.counts['failed']} failed" if self.counts["failed"] else ""
        return f"{finished} of {len(self.plan.jobs)} pictures{failed}"


class Lines:
    """Turns progress into lines for a log: one at each pass, and one every half minute."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self.print_line, self.last, self.number = print_line, 0.0, 0

    def __call__(self, status: Status) -> None:
        now = time.monotonic()
        if status.number != self.number or now - self.last > SECONDS_BETWEEN_LINES or status.tile == status.tiles:
            self.last, self.number = now, status.number
            self.print_line(str(status))


def _pixels(job: Job) -> int:
    return 0 if job.target is None else job.target.whole[0] * job.target.whole[1]


def _size(size: Size) -> str:
    return f"{size[0]}×{size[1]}"
