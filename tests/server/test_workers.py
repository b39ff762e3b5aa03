"""Jobs: the urgent first, so many at once, and none that nobody wants."""

import threading
import time

import pytest

from srno.server.workers import ROOM, BusyError, StoppedError, Worker


@pytest.fixture
def gate():
    """A job that holds a worker until it is let go."""
    opened = threading.Event()
    yield opened
    opened.set()


def hold(gate: threading.Event):
    return lambda _progress: gate.wait(10)


def test_urgent_jobs_come_first_and_among_equals_the_older(gate):
    worker, order = Worker("test", 1, lambda: None), []
    first = worker.submit(hold(gate))
    while not first.future.running():
        time.sleep(0.001)
    jobs = [worker.submit(lambda _, i=i: order.append(i), urgency) for i, urgency in enumerate([1, 0, 1, 0])]
    gate.set()
    for job in jobs:
        job.future.result(5)
    assert order == [1, 3, 0, 2]


def test_a_job_that_waits_is_dropped(gate):
    worker, ran = Worker("test", 1, lambda: None), []
    worker.submit(hold(gate))
    job = worker.submit(lambda _: ran.append(1))
    job.cancel()
    gate.set()
    assert worker.join(5)
    assert job.future.cancelled()
    assert not ran


def test_a_job_that_runs_stops_at_its_next_word():
    worker, begun, told = Worker("test", 1, lambda: None), threading.Event(), []

    def work(progress):
        for i in range(10_000):
            progress(i / 10_000)
            told.append(i)
            begun.set()
            time.sleep(0.001)

    job = worker.submit(work)
    begun.wait(5)
    job.cancel()
    with pytest.raises(StoppedError):
        job.future.result(5)
    assert len(told) < 5_000


def test_no_more_run_at_once_than_there_are_threads():
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
    for _ in range(ROOM):
        worker.submit(lambda _: None)
    with pytest.raises(BusyError, match="too much to do"):
        worker.submit(lambda _: None)
    worker.close()
    gate.set()
    assert worker.join(5)


def test_an_error_belongs_to_its_job_alone():
    worker = Worker("test", 1, lambda: None)
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda _: 1 / 0).future.result(5)
    assert worker.submit(lambda _: 7).future.result(5) == 7


def test_time_left_is_told_once_there_is_something_to_go_by():
    worker, steps, answers = Worker("test", 1, lambda: None), threading.Semaphore(0), []

    def work(progress):
        answers.append(job.seconds_left)
        time.sleep(0.1)
        progress(0.5)
        answers.append(job.seconds_left)

    job = None
    steps.release()
    job = worker.submit(lambda progress: (time.sleep(0.02), work(progress)))
    job.future.result(5)
    assert answers[0] is None
    assert 0.05 < answers[1] < 2
