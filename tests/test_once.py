"""The cache computes each result once, also for several threads."""

import copy
import pickle
import threading
import time
from collections.abc import Callable

import pytest

from srno.once import Once


def test_a_result_that_several_threads_need_is_computed_once():
    calls: list[int] = []

    def slowly() -> int:
        calls.append(3)
        time.sleep(0.05)
        return 9

    once, results = Once[int, int](4), list[int]()
    threads = [threading.Thread(target=lambda: results.append(once(3, slowly))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [9] * 8
    assert calls == [3]
    assert once.get(3) == 9
    assert once.get(4) is None


def test_only_the_most_recently_used_results_are_kept():
    calls: list[int] = []
    once = Once[int, int](2)
    for key in (1, 2, 1, 3, 1, 2):
        assert once(key, lambda key=key: calls.append(key) or key) == key
    assert calls == [1, 2, 3, 2]


def test_a_failed_computation_is_retried():
    attempts = iter([ValueError("no"), 5])

    def sometimes() -> int:
        outcome = next(attempts)
        if isinstance(outcome, ValueError):
            raise outcome
        return outcome

    once = Once[int, int](2)
    with pytest.raises(ValueError, match="no"):
        once(0, sometimes)
    assert once(0, sometimes) == 5


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))])
def test_a_copy_starts_empty(duplicate: Callable[[Once[str, int]], Once[str, int]]):
    cache: Once[str, int] = Once(2)
    assert cache("a", lambda: 1) == 1
    other = duplicate(cache)
    assert other.get("a") is None
    assert other("a", lambda: 2) == 2
    assert cache.get("a") == 1
