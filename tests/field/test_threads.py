"""Bands of rows in threads: the same picture, progress in the calling thread, and errors that stop all of them."""

import threading
from functools import partial

import pytest
import torch

from small_models import CONFIGS, random_image, random_model
from srno.field.engine import Advance
from srno.field.field import lift
from srno.field.plan import bands
from srno.field.threads import run_in_threads


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch):
    """Let torch have three threads, and small outputs have several bands."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    monkeypatch.setattr("srno.field.plan.BAND_POINTS", 100)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["edsr", "edsr-nearest", "rdn"])
@pytest.mark.parametrize("size", [(31, 47), (50, 11), (2, 600)])
def test_the_number_of_threads_does_not_change_the_picture(name: str, size: tuple[int, int]):
    field = lift(random_model(CONFIGS[name], dtype=torch.float32).eval(), random_image(13, 17)[0].float())
    integrals = field.integrate(size)
    by_three = field.render(size, integrals=integrals)
    torch.set_num_threads(1)
    assert torch.equal(field.render(size, integrals=integrals), by_three)


@pytest.mark.parametrize("name", ["edsr", "rdn"])
def test_bands_give_the_picture_of_one_pass(name: str, monkeypatch: pytest.MonkeyPatch):
    field = lift(random_model(CONFIGS[name], dtype=torch.float32).eval(), random_image(13, 17)[0].float())
    in_bands = field.render((31, 47))
    monkeypatch.setattr("srno.field.plan.MOST_BANDS", 1)
    torch.testing.assert_close(in_bands, field.render((31, 47)), rtol=0, atol=2e-5)


@pytest.mark.parametrize(("size", "count"), [((7, 100), 7), ((2, 600), 2), ((1, 1), 1), ((300, 200), 32), ((9, 40), 3)])
def test_bands_cover_every_row_once(size: tuple[int, int], count: int):
    found = bands(size, torch.device("cpu"))
    assert [row for band in found for row in band] == list(range(size[0]))
    assert len(found) == count
    assert bands(size, torch.device("cuda")) == [range(size[0])]


def test_each_task_has_one_core_and_progress_comes_to_the_caller():
    cores: list[int] = []
    callers: list[int] = []
    together = threading.Barrier(3, timeout=60)

    def task(advance: Advance) -> None:
        together.wait()  # all three run at once
        cores.append(torch.get_num_threads())
        advance(5)

    run_in_threads([task] * 3, lambda points: callers.extend([threading.get_ident()] * points))
    assert cores == [1, 1, 1]
    assert callers == [threading.get_ident()] * 15
    assert torch.get_num_threads() == 3


def test_an_error_stops_the_other_tasks():
    failed = threading.Event()

    def fail(_advance: Advance) -> None:
        failed.set()
        raise MemoryError("can't allocate memory")

    def work(advance: Advance) -> None:
        failed.wait(60)
        while True:  # until a report is refused
            advance(1)

    with pytest.raises(MemoryError):
        run_in_threads([work, fail, work], lambda _: None)


def test_progress_may_cancel():
    def work(advance: Advance) -> None:
        while True:
            advance(1)

    def cancel(done: list[int], points: int) -> None:
        done.append(points)
        if len(done) == 10:
            raise KeyboardInterrupt

    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        run_in_threads([work] * 3, partial(cancel, done))
    assert len(done) == 10
