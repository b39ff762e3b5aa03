"""Jobs run by priority, after the jobs they need, in a bounded number of threads, and can be cancelled."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from srno.errors import SRNOError
from srno.server.workers import MAX_WAITING_JOBS, BusyError, Shared, StoppedError, Task, Worker


@pytest.fixture
def gate():
    """An event that keeps a worker busy until it is set."""
    opened = threading.Event()
    yield opened
    opened.set()


def hold(gate: threading.Event):
    return lambda _progress: gate.wait(10)


def test_jobs_run_by_priority_and_then_in_order_of_submission(gate):
    worker, order = Worker("test", 1, lambda: None), []
    first = worker.submit(hold(gate))
    while not first.future.running():
        time.sleep(0.001)
    priorities = [(1, 0), (0, 1), (1, 0), (0, 0)]
    jobs = [worker.submit(lambda _, i=i: order.append(i), priority) for i, priority in enumerate(priorities)]
    gate.set()
    for job in jobs:
        job.future.result(5)
    assert order == [3, 1, 0, 2]


def test_a_waiting_job_is_dropped_when_cancelled(gate):
    worker, ran = Worker("test", 1, lambda: None), []
    worker.submit(hold(gate))
    job = worker.submit(lambda _: ran.append(1))
    job.cancel()
    gate.set()
    assert worker.join(5)
    assert job.future.cancelled()
    assert not ran


def test_a_running_job_stops_at_its_next_progress_report():
    worker, started, reported = Worker("test", 1, lambda: None), threading.Event(), []

    def work(progress):
        for i in range(10_000):
            progress(i / 10_000)
            reported.append(i)
            started.set()
            time.sleep(0.001)

    job = worker.submit(work)
    started.wait(5)
    job.cancel()
    with pytest.raises(StoppedError):
        job.future.result(5)
    assert len(reported) < 5_000


def test_at_most_as_many_jobs_run_at_once_as_there_are_threads():
    worker, running, most, lock = Worker("test", 2, lambda: None), 0, 0, threading.Lock()

    def work(_progress):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1

    for job in [worker.submit(work) for _ in range(8)]:
        job.future.result(5)
    assert most == 2


def test_the_queue_is_bounded(gate):
    worker = Worker("test", 1, lambda: None)
    first = worker.submit(hold(gate))
    while not first.future.running():
        time.sleep(0.001)
    for _ in range(MAX_WAITING_JOBS):
        worker.submit(lambda _: None)
    with pytest.raises(BusyError, match="too many jobs waiting"):
        worker.submit(lambda _: None)
    worker.close()
    gate.set()
    assert worker.join(5)


def test_an_error_in_a_job_leaves_the_worker_running():
    worker = Worker("test", 1, lambda: None)
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda _: 1 / 0).future.result(5)
    assert worker.submit(lambda _: 7).future.result(5) == 7


def test_time_left_is_known_after_the_first_progress_report():
    worker, submitted, answers = Worker("test", 1, lambda: None), threading.Event(), []

    def work(progress):
        assert submitted.wait(5)
        answers.append(job.seconds_left)
        time.sleep(0.1)
        progress(0.5)
        answers.append(job.seconds_left)

    job = worker.submit(work)
    submitted.set()
    job.future.result(5)
    assert answers[0] is None
    assert 0.05 < answers[1] < 2


def test_a_job_runs_after_those_that_it_needs(gate):
    worker, order = Worker("test", 3, lambda: None), []
    needed = [
        *(worker.submit(lambda _, i=i: (gate.wait(5), order.append(i))) for i in range(2)),
        worker.submit(lambda _: 1 / 0),
    ]
    job = worker.submit(lambda _: order.append("last"), (-1, 0), needed)
    assert not job.future.done()
    gate.set()
    job.future.result(5)
    assert order[-1] == "last"
    assert len(order) == 3


def test_a_job_that_waits_for_others_can_be_cancelled(gate):
    worker, ran = Worker("test", 1, lambda: None), []
    job = worker.submit(lambda _: ran.append(1), (0, 0), [worker.submit(hold(gate))])
    job.cancel()
    gate.set()
    assert worker.join(5)
    assert job.future.cancelled()
    assert not ran


def test_a_job_after_finished_ones_runs_at_once():
    worker = Worker("test", 1, lambda: None)
    assert worker.submit(lambda _: 3, (0, 0), [Task.finished(1), Task.finished(2)]).future.result(5) == 3


def test_shared_jobs_run_once_and_end_when_nothing_needs_them(gate):
    worker, shared, ran = Worker("test", 1, lambda: None), Shared(), []
    worker.submit(hold(gate))

    def submit() -> Task[None]:
        return worker.submit(lambda _: ran.append(1))

    kept, dropped = [shared.join("kept", submit) for _ in range(3)], shared.join("dropped", submit)
    assert len({id(job) for job in kept}) == 1
    shared.leave("kept")
    shared.leave("dropped")
    assert dropped.future.cancelled()
    gate.set()
    kept[0].future.result(5)
    assert ran == [1]
    shared.leave("kept")
    shared.leave("kept")
    assert len(shared) == 0


@pytest.mark.parametrize("error", [StoppedError, SRNOError])
def test_the_arrays_of_an_interrupted_job_are_freed_without_the_garbage_collector(error):
    worker, arrays = Worker("test", 1, lambda: None), []

    def work(_progress):
        large = np.zeros(1000)
        arrays.append(weakref.ref(large))
        try:
            raise OSError
        except OSError:
            raise error("interrupted") from None

    gc.disable()
    try:
        job = worker.submit(work)
        with pytest.raises(error):
            job.future.result(5)
        assert worker.join(5)
        assert arrays[0]() is None
    finally:
        gc.enable()


def test_a_finished_job_and_its_result_are_freed_without_the_garbage_collector():
    worker = Worker("test", 1, lambda: None)
    gc.disable()
    try:
        job = worker.submit(lambda _: np.zeros(1000))
        result = weakref.ref(job.future.result(5))
        assert worker.join(5)
        del job
        end = time.monotonic() + 5
        while result() is not None and time.monotonic() < end:
            time.sleep(0.001)  # the thread may still hold the job
        assert result() is None
    finally:
        gc.enable()
