"""Jobs overlap, keep their order, and are few at a time."""

import gc
import threading
import weakref
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.upscaling.batch import overlapped

PATIENCE = 60.0
"""Seconds after which a step that should run beside another counts as missing."""


@given(st.lists(st.booleans(), max_size=12))
def test_results_come_in_order_whatever_overlaps(small: list[bool]):
    items = list(range(len(small)))
    found = overlapped(
        items, lambda item: 10 * item, lambda item, loaded: lambda: (item, loaded), lambda item: small[item]
    )
    assert list(found) == [(item, (item, 10 * item)) for item in items]


def test_the_next_is_read_and_the_last_is_written_while_one_is_computed():
    read = [threading.Event() for _ in range(3)]
    written = [threading.Event() for _ in range(3)]
    beside: list[str] = []

    def load(item: int) -> int:
        read[item].set()
        return item

    def work(item: int, _: int) -> Callable[[], int]:
        if item < 2 and read[item + 1].wait(PATIENCE):
            beside.append(f"read {item + 1}")
        if item > 0 and written[item - 1].wait(PATIENCE):
            beside.append(f"written {item - 1}")

        def finish() -> int:
            written[item].set()
            return item

        return finish

    assert [result for _, result in overlapped(range(3), load, work, lambda _: True)] == [0, 1, 2]
    assert beside == ["read 1", "read 2", "written 0", "written 1"]


def test_large_items_stay_in_the_calling_thread():
    here = threading.get_ident()
    threads = set[int]()

    def load(item: int) -> int:
        threads.add(threading.get_ident())
        return item

    def work(item: int, _: int) -> Callable[[], None]:
        return lambda: threads.add(threading.get_ident())

    list(overlapped(range(4), load, work, lambda item: item % 2 == 0))
    assert threads == {here}


class Samples:
    """What an item holds in memory."""


def test_at_most_three_items_are_in_memory():
    alive: weakref.WeakSet[Samples] = weakref.WeakSet()
    most = 0

    def load(_: int) -> Samples:
        samples = Samples()
        alive.add(samples)
        return samples

    def work(_: int, loaded: Samples) -> Callable[[], int]:
        nonlocal most
        gc.collect()
        most = max(most, len(alive))
        return lambda: id(loaded)

    list(overlapped(range(20), load, work, lambda _: True))
    assert most <= 3


def test_an_interrupt_leaves_no_thread():
    before = threading.active_count()

    def work(item: int, _: int) -> Callable[[], int]:
        if item == 2:
            raise KeyboardInterrupt
        return lambda: item

    with pytest.raises(KeyboardInterrupt):
        list(overlapped(range(5), lambda item: item, work, lambda _: True))
    assert threading.active_count() == before
