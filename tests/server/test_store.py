"""Memory has a budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.errors import SRNOError
from srno.server.store import Store

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
