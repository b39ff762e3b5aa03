"""Threads that compute: so many and no more, the most urgent job first, and any job can be called off."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Full, PriorityQueue
from typing import Any, Generic, TypeAlias, TypeVar

from srno.errors import SRNOError
from srno.progress import Progress

Result = TypeVar("Result")
Work: TypeAlias = Callable[[Progress], Result]
"""Computes something and says how far it is; that call raises `StoppedError` when nobody wants the result any more."""

ROOM = 256
"""Jobs that may wait for a worker."""


class StoppedError(Exception):
    """Nobody wants the result any more."""


class BusyError(SRNOError):
    """More jobs are waiting than is sensible."""


class Task(Generic[Result]):
    """A piece of work that waits, runs or is done."""

    def __init__(self, work: Work[Result]) -> None:
        self.future: Future[Result] = Future()
        self.share = 0.0
        self._work = work
        self._began: float | None = None
        self._stopped = threading.Event()

    def cancel(self) -> None:
        """Drop it if it waits; if it runs, let it stop at its next word about progress."""
        self._stopped.set()
        self.future.cancel()

    @property
    def seconds_left(self) -> float | None:
        """An estimate, once there is something to go by."""
        if self._began is None or self.share < 0.001:
            return None
        return (time.monotonic() - self._began) * (1 - self.share) / self.share

    def run(self) -> None:
        """Do the work, in the thread of the caller."""
        if not self.future.set_running_or_notify_cancel():
            return
        self._began = time.monotonic()
        try:
            self.future.set_result(self._work(self._advance))
        except BaseException as error:
            self.future.set_exception(error)

    def _advance(self, share: float) -> None:
        if self._stopped.is_set():
            raise StoppedError
        self.share = share


class Worker:
    """A queue and the threads that empty it. They die with the process, whatever they are doing."""

    def __init__(self, name: str, threads: int, prepare: Callable[[], None]) -> None:
        """`prepare` is called once in each thread, before its first job."""
        self._queue: PriorityQueue[tuple[int, int, Task[Any]]] = PriorityQueue(ROOM)
        self._jobs: set[Task[Any]] = set()
        self._lock = threading.Lock()
        self._count = 0
        self._threads = [
            threading.Thread(target=self._serve, args=(prepare,), name=f"{name}-{i}", daemon=True)
            for i in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Work[Result], urgency: int = 0) -> Task[Result]:
        """Queue some work; a smaller number comes first, and among equals the older."""
        job = Task(work)
        with self._lock:
            self._count += 1
            self._jobs.add(job)
            serial = self._count
        try:
            self._queue.put_nowait((urgency, serial, job))
        except Full:
            self._forget(job)
            raise BusyError("the server has too much to do; try again in a moment") from None
        return job

    def close(self) -> None:
        """Call everything off."""
        with self._lock:
            jobs = list(self._jobs)
        for job in jobs:
            job.cancel()

    def join(self, seconds: float) -> bool:
        """Wait until nothing is running; whether that came true in time."""
        end = time.monotonic() + seconds
        while self._jobs and time.monotonic() < end:
            time.sleep(0.01)
        return not self._jobs

    def _serve(self, prepare: Callable[[], None]) -> None:
        prepare()
        while True:
            job = self._queue.get()[2]
            try:
                job.run()
            finally:
                self._forget(job)
            del job  # its result may be large

    def _forget(self, job: Task[Any]) -> None:
        with self._lock:
            self._jobs.discard(job)
