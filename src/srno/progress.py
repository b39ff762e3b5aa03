"""Progress callbacks, and callbacks for parts of the work."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1; may raise to cancel it."""


def between(progress: Progress | None, start: float, stop: float) -> Progress | None:
    """Return the callback of a part that covers the shares from `start` to `stop`."""
    return None if progress is None else lambda share: progress(start + share * (stop - start))


def part_of(progress: Progress | None, index: int, count: int) -> Progress | None:
    """Return the callback of part `index` out of `count` equal ones."""
    return between(progress, index / count, (index + 1) / count)
