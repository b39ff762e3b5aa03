"""How long a pixel takes on this machine, from the work done so far."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["encode", "render"]

EARLIER_WEIGHT = 0.8
"""Weight of the earlier measurements; the rest is that of the latest one."""


class Rates:
    """Seconds per pixel of encoding and rendering with each model, in one thread."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, Kind], float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def measure(self, model: str, kind: Kind, pixels: int) -> Generator[None]:
        """Measure a block of code that processes `pixels`."""
        start = time.monotonic()
        yield
        self.note(model, kind, (time.monotonic() - start) / pixels)

    def note(self, model: str, kind: Kind, seconds: float) -> None:
        """Take one measurement into account, in seconds per pixel."""
        with self._lock:
            known = self._seconds.get((model, kind), seconds)
            self._seconds[model, kind] = EARLIER_WEIGHT * known + (1 - EARLIER_WEIGHT) * seconds

    def estimate(self, model: str, encoded: int, rendered: int) -> float | None:
        """Seconds to encode and render these pixels in one thread; None before both were measured."""
        encode, render = self._seconds.get((model, "encode")), self._seconds.get((model, "render"))
        return None if encode is None or render is None else encoded * encode + rendered * render
