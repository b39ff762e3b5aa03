"""What is kept in memory, up to a budget: what was used least recently makes room."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

from srno.errors import SRNOError

Value = TypeVar("Value")


class Store:
    """Values of any kind with their sizes in bytes, in the order of their last use. Threads may share it."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._entries: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._used = 0

    @property
    def used(self) -> int:
        """Bytes that are taken."""
        return self._used

    def check(self, size: int, what: str) -> None:
        """Refuse what would not fit even if it were alone."""
        if size > self.budget:
            raise SRNOError(f"{what} takes {size / 1e9:.1f} GB of memory; --memory allows {self.budget / 1e9:.1f} GB")

    def put(self, key: Hashable, value: object, size: int) -> None:
        """Keep a value of `size` bytes, in the place of what was least recently used."""
        self.check(size, "this")
        with self._lock:
            self._remove(key)
            self._entries[key] = (value, size)
            self._used += size
            while self._used > self.budget:
                self._remove(next(iter(self._entries)))

    def get(self, key: Hashable, kind: type[Value]) -> Value | None:
        """The value, which counts as used now, or None if it has had to go."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            value = self._entries[key][0]
        assert isinstance(value, kind)
        return value

    def drop(self, key: Hashable) -> None:
        """Forget a value, if it is still there."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: Hashable) -> None:
        if key in self._entries:
            self._used -= self._entries.pop(key)[1]
