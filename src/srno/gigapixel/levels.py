"""Levels of a tiled file: the picture, halves of it, and the small tiles that are stored of each.

A work tile fills the finest levels by itself. What remains of it after those, a few pixels, is gathered with the
remains of its neighbours into a work tile of a coarser stage, so that no level is ever in memory as a whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from srno.imaging.picture import Samples

Size = tuple[int, int]


@dataclass(frozen=True)
class Cut:
    """A small tile of a level."""

    level: int
    row: int
    column: int
    samples: Samples
    """(h, w, channels); smaller than a full tile at the right and lower edges"""


@dataclass(frozen=True)
class Levels:
    """Sizes of the levels, the full one first, and the stages in which they are made."""

    size: Size
    count: int
    tile: int
    """Pixels along a side of a stored tile."""
    side: int
    """Pixels along a side of a work tile, `tile` times a power of two."""

    @property
    def per_stage(self) -> int:
        """Levels that a work tile fills by itself."""
        return (self.side // self.tile).bit_length()

    @property
    def stages(self) -> int:
        return -(-self.count // self.per_stage)

    def size_of(self, level: int) -> Size:
        """(height, width) of a level."""
        height, width = (-(-n // (1 << level)) for n in self.size)
        return height, width

    def places(self, stage: int) -> Size:
        """Rows and columns of the work tiles of a stage."""
        rows, columns = (-(-n // self.side) for n in self.size_of(stage * self.per_stage))
        return rows, columns

    def tiles(self, level: int) -> Size:
        """Rows and columns of the stored tiles of a level."""
        rows, columns = (-(-n // self.tile) for n in self.size_of(level))
        return rows, columns

    def cut(self, stage: int, place: Size, samples: Samples) -> tuple[list[Cut], Samples | None]:
        """Cut a work tile into the tiles of its levels; return them and what remains for the next stage."""
        first = stage * self.per_stage
        cuts: list[Cut] = []
        for level in range(first, min(first + self.per_stage, self.count)):
            across = self.side >> (level - first)
            cuts += self._cut_level(level, place[0] * across // self.tile, place[1] * across // self.tile, samples)
            if level + 1 == self.count:
                return cuts, None
            samples = halve(samples)
        return cuts, samples

    def _cut_level(self, level: int, row: int, column: int, samples: Samples) -> Iterator[Cut]:
        for i, top in enumerate(range(0, samples.shape[0], self.tile)):
            for j, left in enumerate(range(0, samples.shape[1], self.tile)):
                part = samples[top : top + self.tile, left : left + self.tile]
                yield Cut(level, row + i, column + j, np.ascontiguousarray(part))

    def children(self, stage: int, place: Size) -> Iterator[tuple[Size, tuple[slice, slice]]]:
        """The work tiles of the stage before whose remains make up a work tile, and where each belongs."""
        group, step = 1 << self.per_stage, self.side >> self.per_stage
        below = self.places(stage - 1)
        for row in range(place[0] * group, min((place[0] + 1) * group, below[0])):
            for column in range(place[1] * group, min((place[1] + 1) * group, below[1])):
                y, x = (row % group) * step, (column % group) * step
                yield (row, column), (slice(y, y + step), slice(x, x + step))

    def stage_tile(self, stage: int, place: Size) -> Size:
        """(height, width) of a work tile."""
        size = self.size_of(stage * self.per_stage)
        height, width = (min(self.side, n - at * self.side) for n, at in zip(size, place, strict=True))
        return height, width


def level_count(size: Size, smallest: int) -> int:
    """Levels until both sides are at most `smallest`."""
    count = 1
    while max(-(-n // (1 << (count - 1))) for n in size) > smallest:
        count += 1
    return count


def halve(samples: Samples) -> Samples:
    """Mean over 2×2 pixels, halves up; an odd last row or column is averaged with itself."""
    height, width = samples.shape[:2]
    if height % 2 or width % 2:
        samples = np.pad(samples, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    rows = np.add(samples[0::2], samples[1::2], dtype=np.uint16 if samples.dtype == np.uint8 else np.uint32)
    sums = rows[:, 0::2] + rows[:, 1::2]
    sums += 2
    sums >>= 2
    return sums.astype(samples.dtype)
