"""What threads share: a cache of results that are computed once, and a lock for each piece of work."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from typing import Generic, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Once(Generic[Key, Value]):
    """A cache of the `capacity` most recently used results; one thread computes each while others that need it wait."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._slots: OrderedDict[Key, _Slot] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> "tuple[type[Once[Key, Value]], tuple[int]]":
        """A copy starts empty: locks cannot be copied, and results can be computed again."""
        return Once, (self._capacity,)

    def __call__(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the result for `key`; compute it if it is not cached."""
        slot = self._slot(key)
        with slot.lock:
            if not slot.filled:
                slot.value = make()
                slot.filled = True
        return cast(Value, slot.value)

    def get(self, key: Key) -> Value | None:
        """Return the result for `key` if it is cached, else None; does not wait."""
        with self._lock:
            slot = self._slots.get(key)
        return cast(Value, slot.value) if slot is not None and slot.filled else None

    def _slot(self, key: Key) -> "_Slot":
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self._capacity:
                self._slots.popitem(last=False)
            return slot


class _Slot:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.filled = False
        self.value: object = None


class Claims:
    """A lock for each key in use: one thread computes a value, and others that need it wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed: dict[Hashable, tuple[threading.Lock, int]] = {}

    @contextmanager
    def __call__(self, key: Hashable) -> Generator[None]:
        """Hold the lock of a key."""
        with self._lock:
            lock, users = self._claimed.get(key, (threading.Lock(), 0))
            self._claimed[key] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._claimed.pop(key)
                if users > 1:
                    self._claimed[key] = lock, users - 1

    def __contains__(self, key: Hashable) -> bool:
        return key in self._claimed
