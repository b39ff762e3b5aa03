"""Worker threads: a bounded priority queue, a fixed number of threads, and jobs that may wait for others."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, Full, PriorityQueue
from typing import Any, Generic, TypeAlias, TypeVar

from srno.errors import SRNOError
from srno.machine import release_memory
from srno.progress import Progress

Result = TypeVar("Result")
Work: TypeAlias = Callable[[Progress], Result]
"""Computes a result and reports its progress; that call raises `StoppedError` once the job is cancelled."""
Priority: TypeAlias = tuple[int, int]
"""The smaller one runs first."""

FIRST: Priority = (-1, 0)
MAX_WAITING_JOBS = 1024
"""Jobs that may wait in the queue of a worker."""
IDLE_SECONDS = 0.5
"""Time without a job after which a thread returns freed memory to the system."""


class StoppedError(Exception):
    """The job was cancelled."""


class BusyError(SRNOError):
    """The queue is full."""


class Task(Generic[Result]):
    """A job that waits, runs or is done."""

    def __init__(self, work: Work[Result]) -> None:
        self.future: Future[Result] = Future()
        self.share = 0.0
        self._work: Work[Result] | None = work
        self._start_time: float | None = None
        self._stopped = threading.Event()

    @classmethod
    def finished(cls, result: Result) -> "Task[Result]":
        """A job whose result is known."""
        task = cls(lambda _: result)
        task.run()
        return task

    def cancel(self) -> None:
        """Drop a job that waits; a job that runs stops at its next progress report."""
        self._stopped.set()
        if self.future.cancel():
            self._work = None

    @property
    def seconds_left(self) -> float | None:
        """Estimated time to the end; None before the first progress report."""
        if self._start_time is None or self.share < 0.001:
            return None
        return (time.monotonic() - self._start_time) * (1 - self.share) / self.share

    def run(self) -> None:
        """Run the job in the calling thread."""
        if not self.future.set_running_or_notify_cancel():
            return
        work, self._work = self._work, None  # the closure may hold a whole picture
        assert work is not None
        self._start_time = time.monotonic()
        try:
            self.future.set_result(work(self._advance))
        except BaseException as error:
            if not isinstance(error, SRNOError | StoppedError):
                logging.getLogger(__name__).error("a job failed", exc_info=error)
            self.future.set_exception(_without_frames(error))

    def fail(self, error: Exception) -> None:
        """End a job that has not started with an error."""
        if self.future.set_running_or_notify_cancel():
            self._work = None
            self.future.set_exception(error)

    def _advance(self, share: float) -> None:
        if self._stopped.is_set():
            raise StoppedError
        self.share = share


class Worker:
    """A queue and the threads that run its jobs. The threads are daemons: they end with the process."""

    def __init__(self, name: str, threads: int, prepare: Callable[[], None]) -> None:
        """`prepare` is called once in each thread, before its first job."""
        self._queue: PriorityQueue[tuple[Priority, int, Task[Any]]] = PriorityQueue(MAX_WAITING_JOBS)
        self._jobs: dict[int, Task[Any]] = {}
        self._lock = threading.Lock()
        self._count = 0
        self._threads = [
            threading.Thread(target=self._serve, args=(prepare,), name=f"{name}-{i}", daemon=True)
            for i in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Work[Result], priority: Priority = (0, 0), after: Sequence[Task[Any]] = ()) -> Task[Result]:
        """Queue a job; equal priorities run in the order of submission.

        A job that comes `after` others enters the queue when all of them are done, whether or not they succeeded.
        """
        job = Task(work)
        with self._lock:
            self._count += 1
            serial = self._count
            self._jobs[serial] = job
        # By number: a future that holds its own job would stay in memory until the garbage collector runs.
        job.future.add_done_callback(lambda _: self._jobs.pop(serial, None))
        if not after:
            self._enter(job, priority, serial)
        else:
            self._enter_after(job, priority, serial, after)
        return job

    def close(self) -> None:
        """Cancel all jobs."""
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.cancel()

    def join(self, seconds: float) -> bool:
        """Wait until no job waits or runs; return whether that happened in time."""
        end = time.monotonic() + seconds
        while self._jobs and time.monotonic() < end:
            time.sleep(0.01)
        return not self._jobs

    def _enter(self, job: Task[Any], priority: Priority, serial: int) -> None:
        try:
            self._queue.put_nowait((priority, serial, job))
        except Full:
            error = BusyError("the server has too many jobs waiting; try again in a moment")
            job.fail(error)
            raise error from None

    def _enter_after(self, job: Task[Any], priority: Priority, serial: int, after: Sequence[Task[Any]]) -> None:
        lock, left = threading.Lock(), len(after)

        def step(_future: Future[Any]) -> None:
            nonlocal left
            with lock:
                left -= 1
                if left:
                    return
            with suppress(BusyError):  # the job has failed with it
                self._enter(job, priority, serial)

        for other in after:
            other.future.add_done_callback(step)

    def _serve(self, prepare: Callable[[], None]) -> None:
        prepare()
        while True:
            job = self._next()
            job.run()
            del job  # its result may be large

    def _next(self) -> Task[Any]:
        """Wait for a job; release memory after a while without one."""
        try:
            return self._queue.get(timeout=IDLE_SECONDS)[2]
        except Empty:
            release_memory()
        return self._queue.get()[2]


class Shared:
    """Jobs that several others need: each is submitted once, and cancelled when nothing needs it any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[Hashable, tuple[Task[Any], int]] = {}

    def join(self, key: Hashable, submit: Callable[[], Task[Any]]) -> Task[Any]:
        """Return the job of a key; `submit` it if there is none. Every call needs a `leave`."""
        with self._lock:
            job, users = self._jobs.get(key) or (submit(), 0)
            self._jobs[key] = job, users + 1
            return job

    def leave(self, key: Hashable) -> None:
        """Take back one `join`."""
        with self._lock:
            job, users = self._jobs.pop(key)
            if users > 1:
                self._jobs[key] = job, users - 1
                return
        job.cancel()

    def __len__(self) -> int:
        return len(self._jobs)


def _without_frames(error: BaseException) -> BaseException:
    """Remove the frames of an exception and of those behind it.

    They hold the arrays of the interrupted work, and a job that holds its exception and is held by its frames stays
    in memory until the garbage collector runs.
    """
    behind: BaseException | None = error
    while behind is not None:
        behind.__traceback__ = None
        behind = behind.__cause__ or behind.__context__
    return error
