"""Memory has a budget, and work that many want is done once."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.errors import SRNOError
from srno.server.store import Once, Store

BUDGET = 100


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, BUDGET), st.booleans())))
def test_the_budget_holds_and_the_latest_stay(steps):
    store, order, sizes = Store(BUDGET), [], {}
    for key, size, look in steps:
        if look:
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


def test_what_is_larger_than_the_budget_is_refused_and_nothing_goes():
    store = Store(BUDGET)
    store.put("a", "a", 60)
    with pytest.raises(SRNOError, match="--memory"):
        store.put("b", "b", BUDGET + 1)
    assert store.get("a", str) == "a"


def test_what_several_threads_want_is_computed_once():
    calls: list[int] = []

    def slowly(key: int) -> int:
        calls.append(key)
        time.sleep(0.05)
        return key * key

    once, results = Once(slowly, 4), []
    threads = [threading.Thread(target=lambda: results.append(once(3))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [9] * 8
    assert calls == [3]


def test_only_the_last_few_results_are_kept():
    calls: list[int] = []
    once = Once(lambda key: calls.append(key) or key, 2)
    for key in (1, 2, 1, 3, 1, 2):
        assert once(key) == key
    assert calls == [1, 2, 3, 2]


def test_a_failure_is_tried_again():
    attempts = iter([ValueError("no"), 5])

    def sometimes(_key: int) -> int:
        outcome = next(attempts)
        if isinstance(outcome, ValueError):
            raise outcome
        return outcome

    once = Once(sometimes, 2)
    with pytest.raises(ValueError, match="no"):
        once(0)
    assert once(0) == 5
