"""A picture divided into small square blocks, and rectangles of whole blocks, the pieces that are encoded at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from torch import Tensor

Place: TypeAlias = tuple[int, int]
"""Row and column of a block."""
Piece: TypeAlias = tuple[int, int, int, int]
"""(top, left, bottom, right) in whole pixels of the picture."""


@dataclass(frozen=True)
class BlockGrid:
    """The blocks of a picture."""

    size: tuple[int, int]
    """(height, width) of the picture."""
    side: int
    """Picture pixels along a side of a block."""
    longest: int
    """Picture pixels along the longest side of a piece."""

    @property
    def all(self) -> Piece:
        """The whole picture."""
        return 0, 0, *self.size

    def places(self, piece: Piece) -> Iterator[Place]:
        """The blocks that contain these pixels."""
        top, left, bottom, right = piece
        if top >= bottom or left >= right:
            return
        for row in range(top // self.side, -(-bottom // self.side)):
            for column in range(left // self.side, -(-right // self.side)):
                yield row, column

    def block(self, place: Place) -> Piece:
        """The pixels of a block."""
        (top, left), (height, width) = (index * self.side for index in place), self.size
        return top, left, min(top + self.side, height), min(left + self.side, width)

    def hull(self, places: list[Place]) -> Piece:
        """The smallest rectangle with all of these blocks."""
        blocks = [self.block(place) for place in places]
        low, high = ([pick(block[i] for block in blocks) for i in range(4)] for pick in (min, max))
        return low[0], low[1], high[2], high[3]

    def cut(self, piece: Piece) -> list[Piece]:
        """Divide the blocks that contain these pixels into equal pieces of at most `longest` pixels a side."""
        rows, columns = (self._runs(piece[axis], piece[axis + 2], self.size[axis]) for axis in (0, 1))
        return [(top, left, bottom, right) for top, bottom in rows for left, right in columns]

    def _runs(self, start: int, stop: int, n: int) -> list[tuple[int, int]]:
        """Divide an interval of 0 … n, extended to whole blocks, into equal runs of whole blocks."""
        first, last = start // self.side, -(-stop // self.side)
        count = -(-(last - first) // max(1, self.longest // self.side))
        edges = [first + (last - first) * i // count for i in range(count + 1)]
        return [(low * self.side, min(n, high * self.side)) for low, high in pairwise(edges)]


def grown(piece: Piece, margin: int, size: tuple[int, int]) -> Piece:
    """A piece and the pixels around it, as far as a picture of `size` has them."""
    top, left, bottom, right = piece
    return max(0, top - margin), max(0, left - margin), min(size[0], bottom + margin), min(size[1], right + margin)


def area(piece: Piece) -> int:
    """Pixels of a piece."""
    return (piece[2] - piece[0]) * (piece[3] - piece[1])


def common(one: Piece, other: Piece) -> Piece:
    """The pixels that two pieces share."""
    return max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])


def cut_out(values: Tensor, piece: Piece, part: Piece) -> Tensor:
    """A part of the values (rows, columns, ...) of a piece."""
    (top, left, _, _), rows, columns = piece, part[2] - part[0], part[3] - part[1]
    return values.narrow(0, part[0] - top, rows).narrow(1, part[1] - left, columns)
