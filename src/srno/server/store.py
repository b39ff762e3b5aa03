"""A memory store with a budget: running work reserves memory, and values make room for it.

Values that were offered can be computed again, so they are removed first, the least recently used before the others.
Those that were put, such as the pictures that people have opened, go only if that is not enough.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Hashable
from contextlib import contextmanager
from typing import TypeVar

from srno.errors import SRNOError
from srno.progress import Progress

Value = TypeVar("Value")

WAIT_SECONDS = 0.05


class FullError(SRNOError):
    """Running work holds the memory that was asked for; it will be free later."""


class Store:
    """Values of any kind with their sizes in bytes, in the order of their last use. Thread-safe."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._entries: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._put: set[Hashable] = set()
        self._lock = threading.Lock()
        self._used = 0
        self._reserved = 0

    @property
    def used(self) -> int:
        """Bytes of the stored values."""
        return self._used

    @property
    def reserved(self) -> int:
        """Bytes that running work has reserved."""
        return self._reserved

    def check(self, size: int, what: str) -> None:
        """Raise if `size` bytes do not fit into the whole budget."""
        if size > self.budget:
            raise SRNOError(f"{what} needs {amount(size)} of memory; --memory allows {amount(self.budget)}")

    @contextmanager
    def reserve(self, size: int, what: str, *, strict: bool = True) -> Generator[None]:
        """Reserve memory for the duration of a block; values are removed to make room.

        Raises if the budget is too small, or other work holds too much of it. Without `strict` it takes what is left,
        and no value that was put is removed.
        """
        if strict:
            self.check(size, what)
        size = self._take(size, strict)
        if size < 0:
            raise FullError(f"{what} needs {amount(-size)} of memory that other work holds; try again in a moment")
        try:
            yield
        finally:
            self._give_back(size)

    @contextmanager
    def wait_for(self, size: int, what: str, progress: Progress) -> Generator[None]:
        """Reserve memory as soon as other work gives it back; reports no progress until then."""
        self.check(size, what)
        while self._take(size, strict=True) < 0:
            progress(0.0)
            time.sleep(WAIT_SECONDS)
        try:
            yield
        finally:
            self._give_back(size)

    def _take(self, size: int, strict: bool) -> int:
        """Reserve bytes and return their number; -size if not all of them are free and `strict` is on."""
        with self._lock:
            left = self.budget - self._reserved
            if strict and size > left:
                return -size
            if not strict:
                size = min(size, max(0, left - self._put_bytes()))
            self._reserved += size
            self._make_room(spare_put=not strict)
            return size

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._reserved -= size

    def put(self, key: Hashable, value: object, size: int, what: str = "the result") -> None:
        """Store a value of `size` bytes that cannot be computed again; others are removed if there is no room."""
        self.check(size, what)
        with self._lock:
            self._insert(key, value, size)
            self._put.add(key)
            self._make_room(newest=key)

    def offer(self, key: Hashable, value: object, size: int) -> None:
        """Store a value that can be computed again, unless there is no room for it beside those that were put."""
        with self._lock:
            self._remove(key)
            if size <= self.budget - self._put_bytes():
                self._insert(key, value, size)
                self._make_room(newest=key, spare_put=True)

    def get(self, key: Hashable, kind: type[Value]) -> Value | None:
        """The value, marked as used now; None if it is not stored."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            value = self._entries[key][0]
        assert isinstance(value, kind)
        return value

    def drop(self, key: Hashable) -> None:
        """Remove a value if it is stored."""
        with self._lock:
            self._remove(key)

    def _insert(self, key: Hashable, value: object, size: int) -> None:
        self._remove(key)
        self._entries[key] = (value, size)
        self._used += size

    def _make_room(self, newest: Hashable = None, *, spare_put: bool = False) -> None:
        """Remove values, but for the newest, and perhaps for those that were put, until the budget is met."""
        if self._used + self._reserved <= self.budget:
            return
        removable = [key for key in self._entries if key != newest and not (spare_put and key in self._put)]
        for key in sorted(removable, key=self._put.__contains__):  # stable: the least recently used first
            if self._used + self._reserved <= self.budget:
                return
            self._remove(key)

    def _remove(self, key: Hashable) -> None:
        if key in self._entries:
            self._used -= self._entries.pop(key)[1]
            self._put.discard(key)

    def _put_bytes(self) -> int:
        return sum(self._entries[key][1] for key in self._put)


def amount(size: float) -> str:
    """Bytes as text: 512 B, 64 kB, 3.5 MB, 1.2 GB, 8.65 TB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
