"""The time that a run has trained."""

import threading
import time
from types import TracebackType
from typing import Self

BEAT = 0.5
"""Seconds between two looks at the clock."""
LONGEST = 4 * BEAT
"""What passes between two looks counts at most this much: for longer, the process was stopped or the lid closed."""


class Clock:
    """Seconds of training over all parts of a run; neither breaks between them nor a suspended process count.

    A thread looks at the clock all the time, since steps may be long: only the gaps between its looks tell a
    suspended process from a slow step.
    """

    def __init__(self, before: float = 0.0) -> None:
        self._counted = before
        self._last = time.monotonic()
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="srno-clock", daemon=True)

    def __enter__(self) -> Self:
        self._last = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def seconds(self) -> float:
        """Seconds so far."""
        with self._lock:
            now = time.monotonic()
            self._counted += min(now - self._last, LONGEST)
            self._last = now
            return self._counted

    def _beat(self) -> None:
        while not self._end.wait(BEAT):
            self.seconds()
