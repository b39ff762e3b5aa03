"""Bands of rows in threads: the same picture, progress in the calling thread, and errors that stop all of them."""

import threading
from functools import partial

import pytest
import torch

from small_models import CONFIGS, random_image, random_model
from srno.field import field as field_module
from srno.field.engine import Advance
from srno.field.field import lift
from srno.field.plan import Plan, plan_render
from srno.field.threads import run_in_threads


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch):
    """Let torch have three threads, and small outputs be worth as many."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    monkeypatch.setattr("srno.field.plan.SMALLEST_BAND", 100)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["edsr", "edsr-nearest", "rdn"])
@pytest.mark.parametrize("size", [(31, 47), (50, 11), (2, 600)])
def test_bands_give_the_picture_of_one_thread(name: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch):
    field = lift(random_model(CONFIGS[name], dtype=torch.float32).eval(), random_image(13, 17)[0].float())
    integrals = field.integrate(size)
    plans: list[Plan] = []

    def record(*arguments: object) -> Plan:
        plans.append(plan_render(*arguments))  # pyright: ignore[reportArgumentType]
        return plans[-1]

    monkeypatch.setattr(field_module, "plan_render", record)
    in_bands = field.render(size, integrals=integrals)
    assert plans[-1].threads == 3
    torch.set_num_threads(1)
    alone = field.render(size, integrals=integrals)
    assert plans[-1].threads == 1
    torch.testing.assert_close(in_bands, alone, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("rows", "threads"), [(7, 3), (2, 3), (1, 1), (300, 2)])
def test_bands_cover_every_row_once(rows: int, threads: int):
    bands = Plan(64, 1, False, threads).bands(rows)
    assert [row for band in bands for row in band] == list(range(rows))
    assert len(bands) == min(rows, threads)


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
