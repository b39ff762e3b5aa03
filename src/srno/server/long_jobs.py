"""Long jobs that a page starts, asks about from time to time, and can stop; one that nobody asks about stops itself."""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from srno.errors import SRNOError
from srno.progress import Progress
from srno.server.workers import StoppedError, Task, Work

ABANDONED_SECONDS = 150.0
"""Time without a question after which a job stops. Browsers let a page in the background ask once a minute."""
MAX_REMEMBERED_JOBS = 256

State: TypeAlias = dict[str, Any]


@dataclass(eq=False)
class LongJob:
    """A job and when it was last asked about."""

    task: Task[str]
    asked: float = field(default_factory=time.monotonic)


class LongJobs:
    """Jobs by an id that cannot be guessed. Their result is the name of a file."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._jobs: OrderedDict[str, LongJob] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, submit: Callable[[Work[str]], Task[str]], work: Work[str]) -> str:
        """Submit a job and return its id."""
        name = secrets.token_urlsafe(16)

        def watched(progress: Progress) -> str:
            def report(share: float) -> None:
                if self._is_abandoned(name):
                    raise StoppedError
                progress(share)

            report(0.0)
            return work(report)

        with self._lock:
            self._jobs[name] = LongJob(submit(watched), self._clock())
            while len(self._jobs) > MAX_REMEMBERED_JOBS:
                self._jobs.popitem(last=False)[1].task.cancel()
        return name

    def state(self, name: str, describe: Callable[[str], State]) -> State | None:
        """Share and time left of a job that runs, the description of its file, or an error; None if it is unknown."""
        with self._lock:
            job = self._jobs.get(name)
            if job is None:
                return None
            job.asked = self._clock()
        future = job.task.future
        if not future.done():
            seconds = job.task.seconds_left
            return {"share": round(job.task.share, 4), "seconds": seconds, "waiting": not future.running()}
        if future.cancelled():
            return {"error": "stopped"}
        error = future.exception()
        if error is None:
            return {"done": True, **describe(future.result())}
        if isinstance(error, SRNOError | StoppedError):
            return {"error": str(error) or "stopped"}
        return {"error": "internal error; see the terminal of srno serve"}

    def stop(self, name: str) -> None:
        """Cancel a job; an unknown or finished one is left alone."""
        with self._lock:
            job = self._jobs.get(name)
        if job is not None:
            job.task.cancel()

    def _is_abandoned(self, name: str) -> bool:
        with self._lock:
            job = self._jobs.get(name)
        return job is not None and self._clock() - job.asked > ABANDONED_SECONDS
