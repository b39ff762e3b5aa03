"""Results that are computed once and shared by threads."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Once(Generic[Key, Value]):
    """The most recently used `room` results; each is computed by one thread while others that need it wait."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._slots: OrderedDict[Key, _Slot] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, key: Key, make: Callable[[], Value]) -> Value:
        """The result for `key`, made now if it is not known."""
        slot = self._slot(key)
        with slot.lock:
            if not slot.filled:
                slot.value = make()
                slot.filled = True
        return cast(Value, slot.value)

    def get(self, key: Key) -> Value | None:
        """The result for `key` if it is known; does not wait."""
        with self._lock:
            slot = self._slots.get(key)
        return cast(Value, slot.value) if slot is not None and slot.filled else None

    def _slot(self, key: Key) -> "_Slot":
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self._room:
                self._slots.popitem(last=False)
            return slot


class _Slot:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.filled = False
        self.value: object = None
