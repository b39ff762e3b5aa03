"""Parts of a render in threads of their own, each of which computes on one core.

torch divides every product among its threads and waits for all of them. A render has thousands of short products, and
what lies between them is not divided. Bands of rows do not wait for each other.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from queue import SimpleQueue
from threading import Event

import torch

from srno.field.engine import Advance


def run_in_threads(tasks: Sequence[Callable[[Advance], None]], advance: Advance) -> None:
    """Run the tasks in as many threads as torch has.

    A task is called with a function that it calls with the number of points it has finished. These numbers go to
    `advance` in the calling thread. If that or a task raises, the other tasks stop at their next report, and the error
    is raised here after the last one has stopped.
    """
    if len(tasks) == 1 or torch.get_num_threads() == 1:
        for task in tasks:
            task(advance)
        return
    reports: SimpleQueue[int | None] = SimpleQueue()
    stopped = Event()

    def report(points: int) -> None:
        if stopped.is_set():
            raise _StoppedTaskError
        reports.put(points)

    def run(task: Callable[[Advance], None]) -> None:
        try:
            if not stopped.is_set():
                task(report)
        except _StoppedTaskError:
            pass
        except BaseException:
            stopped.set()
            raise
        finally:
            reports.put(None)

    futures = [_pool(torch.get_num_threads(), os.getpid()).submit(run, task) for task in tasks]
    left = len(tasks)
    try:
        while left:
            points = reports.get()
            if points is None:
                left -= 1
            else:
                advance(points)
    finally:
        stopped.set()
        errors = [future.exception() for future in futures]  # waits for each of them
    for error in errors:
        if error is not None:
            raise error


class _StoppedTaskError(Exception):
    """Ends a task after another one has failed."""


@cache
def _pool(threads: int, _process: int) -> ThreadPoolExecutor:
    """Threads that compute on one core each; they do not survive a fork, so each process has its own."""
    pool = ThreadPoolExecutor(threads, "srno-band", initializer=_use_one_core)
    ready = Event()
    # A thread is started only if no other is idle: block each until all are there.
    started = [pool.submit(ready.wait) for _ in range(threads)]
    ready.set()
    for each in started:
        each.result()
    torch.set_num_threads(threads)  # what threads that start later take as their own number
    return pool


def _use_one_core() -> None:
    torch.set_num_threads(1)  # of this thread
    torch.get_num_threads()  # or the first product would reset it
