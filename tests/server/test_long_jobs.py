"""Jobs of the page: asked about, stopped, and abandoned."""

import threading

import pytest

from srno.errors import SRNOError
from srno.server.long_jobs import ABANDONED_SECONDS, MAX_REMEMBERED_JOBS, LongJobs
from srno.server.workers import Task, Worker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def worker():
    worker = Worker("test", 1, lambda: None)
    yield worker
    worker.close()
    assert worker.join(5)


def describe(name: str) -> dict[str, str]:
    return {"file": name}


def ended(jobs: LongJobs, name: str) -> dict[str, object]:
    while True:
        state = jobs.state(name, describe)
        assert state is not None
        if "share" not in state:
            return state


def test_a_job_reports_its_share_and_then_its_file(worker):
    jobs, step, seen = LongJobs(), threading.Event(), threading.Event()

    def work(progress) -> str:
        progress(0.25)
        seen.set()
        step.wait(5)
        return "picture.png"

    name = jobs.start(worker.submit, work)
    assert seen.wait(5)
    state = jobs.state(name, describe)
    assert state is not None
    assert (state["share"], state["waiting"]) == (0.25, False)
    assert state["seconds"] >= 0
    step.set()
    assert ended(jobs, name) == {"done": True, "file": "picture.png"}


@pytest.mark.parametrize(
    ("error", "text"), [(SRNOError("too large"), "too large"), (KeyError("x"), "internal error; see the terminal")]
)
def test_a_failed_job_reports_what_the_user_can_change(worker, error, text):
    def work(_progress) -> str:
        raise error

    jobs = LongJobs()
    assert str(ended(jobs, jobs.start(worker.submit, work))["error"]).startswith(text)


@pytest.mark.parametrize("asks", [True, False])
def test_a_job_that_nobody_asks_about_stops(worker, asks):
    clock, step, ready = Clock(), threading.Event(), threading.Event()
    jobs = LongJobs(clock)

    def work(progress) -> str:
        ready.set()
        step.wait(5)
        progress(0.5)
        return "picture.png"

    name = jobs.start(worker.submit, work)
    assert ready.wait(5)
    clock.now += 0.9 * ABANDONED_SECONDS
    if asks:
        jobs.state(name, describe)
    clock.now += 0.2 * ABANDONED_SECONDS
    step.set()
    assert worker.join(5)
    assert ended(jobs, name) == ({"done": True, "file": "picture.png"} if asks else {"error": "stopped"})


def test_the_number_of_remembered_jobs_is_bounded():
    jobs = LongJobs()
    names = [jobs.start(lambda _work: Task.finished("x"), lambda _: "x") for _ in range(MAX_REMEMBERED_JOBS + 1)]
    assert jobs.state(names[0], describe) is None
    assert jobs.state(names[-1], describe) == {"done": True, "file": "x"}
