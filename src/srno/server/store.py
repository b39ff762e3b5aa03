"""What is kept in memory, up to a budget: what was used least recently makes room."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast

from srno.errors import SRNOError

Key = TypeVar("Key", bound=Hashable)
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


class Once(Generic[Key, Value]):
    """The last few results of a function, each computed by one thread while others that want it wait."""

    def __init__(self, make: Callable[[Key], Value], room: int) -> None:
        self._make, self._room = make, room
        self._slots: OrderedDict[Key, _Slot] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, key: Key) -> Value:
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self._room:
                self._slots.popitem(last=False)
        with slot.lock:
            if not slot.filled:
                slot.value = self._make(key)
                slot.filled = True
        return cast(Value, slot.value)


class _Slot:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.filled = False
        self.value: object = None
