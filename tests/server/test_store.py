"""The store keeps to its budget, with what running work reserves, and removes the least recently used values."""

import threading
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.errors import SRNOError
from srno.server.store import FullError, Store, amount
from srno.server.workers import StoppedError

BUDGET = 100


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, BUDGET), st.booleans())))
def test_the_budget_is_kept_and_the_most_recently_used_values_stay(steps):
    store, order, sizes = Store(BUDGET), [], {}
    for key, size, is_read in steps:
        if is_read:
            assert store.get(key, str) == (f"{key}" if key in order else None)
            order = [k for k in order if k != key] + ([key] if key in order else [])
            continue
        store.put(key, f"{key}", size)
        sizes[key] = size
        order = [k for k in order if k != key] + [key]
        while sum(sizes[k] for k in order) > BUDGET:
            order.pop(0)
        assert store.used == sum(sizes[k] for k in order) <= BUDGET
        assert [store.get(k, str) for k in order] == [f"{k}" for k in order]


def test_a_value_above_the_budget_is_refused_and_removes_nothing():
    store = Store(BUDGET)
    store.put("a", "a", 60)
    with pytest.raises(SRNOError, match="--memory"):
        store.put("b", "b", BUDGET + 1)
    assert store.get("a", str) == "a"


def test_an_offer_above_the_budget_is_ignored():
    store = Store(BUDGET)
    store.put("a", "a", 60)
    store.offer("b", "b", BUDGET + 1)
    assert (store.get("a", str), store.get("b", str)) == ("a", None)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, BUDGET)), max_size=30))
def test_values_and_reservations_together_keep_to_the_budget(steps):
    store, newest = Store(BUDGET), 0
    with ExitStack() as stack:
        for i, (is_reservation, size) in enumerate(steps):
            if not is_reservation:
                store.offer(i, "value", size)
                newest = size
            elif size <= BUDGET - store.reserved:
                stack.enter_context(store.reserve(size, "work"))
            else:
                with pytest.raises(FullError):
                    stack.enter_context(store.reserve(size, "work"))
            # A value that was just computed stays, even if running work has reserved everything.
            assert store.reserved + store.used <= max(BUDGET, store.reserved + newest)
    assert store.reserved == 0


def test_a_reservation_above_the_budget_names_the_flag():
    with (
        pytest.raises(SRNOError, match="the work needs 101 B of memory; --memory allows 100 B"),
        Store(BUDGET).reserve(BUDGET + 1, "the work"),
    ):
        pass


def test_a_reservation_that_is_not_strict_takes_what_is_left():
    store = Store(BUDGET)
    with store.reserve(70, "one"), store.reserve(500, "other", strict=False):
        assert store.reserved == BUDGET
    assert store.reserved == 0


def test_values_that_can_be_computed_again_are_removed_first():
    store = Store(BUDGET)
    store.put("picture", "picture", 20)
    store.offer("block", "block", 50)
    with store.reserve(60, "work"):
        assert (store.get("picture", str), store.get("block", str)) == ("picture", None)
    with store.reserve(90, "work"):
        assert store.get("picture", str) is None


def test_a_reservation_that_is_not_strict_removes_no_value_that_was_put():
    store = Store(BUDGET)
    store.put("picture", "picture", 20)
    with store.reserve(70, "an export"), store.reserve(60, "a tile", strict=False):
        assert (store.get("picture", str), store.reserved) == ("picture", 80)


def test_an_offer_removes_no_value_that_was_put():
    store = Store(BUDGET)
    store.put("picture", "picture", 60)
    store.offer("block", "block", 50)
    assert (store.get("picture", str), store.get("block", str)) == ("picture", None)


def test_a_picture_that_was_opened_beside_an_export_stays():
    """The export holds almost all memory; tiles of the picture need some, and are offered."""
    store = Store(100)
    with store.reserve(95, "an export"):
        store.put("picture", 1, 10)
        with store.reserve(20, "a tile", strict=False):
            store.offer("tile", 2, 3)
        assert store.get("picture", int) == 1
    store.offer("tile", 2, 3)
    assert store.used + store.reserved == 13


def test_work_waits_until_memory_is_given_back():
    store, asked, order = Store(BUDGET), threading.Event(), []

    def wait() -> None:
        with store.wait_for(50, "other", lambda _: asked.set()):
            order.append("other")

    thread = threading.Thread(target=wait)
    with store.reserve(80, "one"):
        thread.start()
        assert asked.wait(5)
        order.append("one")
    thread.join(5)
    assert order == ["one", "other"]


def test_waiting_for_memory_can_be_cancelled():
    def stop(_share: float) -> None:
        raise StoppedError

    store = Store(BUDGET)
    with store.reserve(80, "one"), pytest.raises(StoppedError), store.wait_for(50, "other", stop):
        pass
    assert store.reserved == 0


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (512, "512 B"), (64_000, "64 kB"), (999_600, "1 MB"), (3_500_000, "3.5 MB"), (1.234e9, "1.23 GB")],
)
def test_amounts_are_readable(size, text):
    assert amount(size) == text
