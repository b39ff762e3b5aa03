"""The plan of a picture that is too large for memory: which tiles there are, and what each one depends on.

The plan is plain data and the same object on one machine and on a cluster. Sizes are (height, width).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from srno.field.field import Region
from srno.field.quadrature import golden_lattice
from srno.gigapixel.point_windows import PointWindows, window_side
from srno.operator.sampling import Sampling, whole_picture, window

Size = tuple[int, int]


@dataclass(frozen=True)
class WorkTile:
    """A rectangle of the enlarged picture."""

    index: int
    rows: tuple[int, int]
    columns: tuple[int, int]
    place: tuple[int, int] | None
    """Row and column among the tiles of the output; None if it lies outside and only its integral counts."""

    @property
    def size(self) -> Size:
        return self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]

    @property
    def points(self) -> int:
        return self.size[0] * self.size[1]


@dataclass(frozen=True)
class TilePlan:
    """Tiles, halos and passes of one picture."""

    lr: Size
    """Size of the picture."""
    whole: Size
    """Size of the enlarged picture, the domain of the integrals."""
    origin: tuple[int, int]
    """Top and left of the output in it."""
    size: Size
    """Size of the output."""
    side: int
    """Pixels of the enlarged picture along a side of a tile."""
    halo: int
    """The encoder's radius, in pixels of the picture."""
    layers: int
    """Galerkin layers, whose integrals are summed one after the other."""
    points: int | None
    """Points of the integrals; None for every pixel."""

    @property
    def sampling(self) -> Sampling:
        """The enlarged picture."""
        return whole_picture(self.lr, self.whole)

    @property
    def integral_passes(self) -> int:
        """Passes over the tiles before the last: points are lifted in one, exact integrals need one per layer."""
        return self.layers if self.points is None else min(1, self.layers)

    @cached_property
    def edges(self) -> tuple[list[int], list[int]]:
        """Edges of the tiles' rows and columns; those of the output are among them."""
        y, x = (
            _edges(n, start, length, self.side)
            for n, start, length in zip(self.whole, self.origin, self.size, strict=True)
        )
        return y, x

    @property
    def count(self) -> int:
        """The number of tiles."""
        return (len(self.edges[0]) - 1) * (len(self.edges[1]) - 1)

    def tile(self, index: int) -> WorkTile:
        """The tile of a number, row by row."""
        row, column = divmod(index, len(self.edges[1]) - 1)
        (top, bottom), (left, right) = (tuple(e[i : i + 2]) for e, i in zip(self.edges, (row, column), strict=True))
        y, x = top - self.origin[0], left - self.origin[1]
        inside = 0 <= y < self.size[0] and 0 <= x < self.size[1]
        return WorkTile(index, (top, bottom), (left, right), (y // self.side, x // self.side) if inside else None)

    def tiles(self) -> Iterator[WorkTile]:
        """All tiles: their integrals add up to that of the picture."""
        return (self.tile(index) for index in range(self.count))

    def output_tiles(self) -> Iterator[WorkTile]:
        """The tiles of the output."""
        return (tile for tile in self.tiles() if tile.place is not None)

    @property
    def output_places(self) -> Size:
        """Rows and columns of the output's tiles."""
        return -(-self.size[0] // self.side), -(-self.size[1] // self.side)

    def region(self, tile: WorkTile) -> Region:
        """The tile in pixels of the picture: top, left, bottom, right."""
        (height, width), (tall, wide) = self.lr, self.whole
        # The product first, so that the last edge is exactly that of the picture.
        top, bottom = (edge * height / tall for edge in tile.rows)
        left, right = (edge * width / wide for edge in tile.columns)
        return top, left, bottom, right

    def window(self, tile: WorkTile) -> tuple[slice, slice]:
        """Rows and columns of the features that the tile depends on."""
        return window(self.lr, tile.size, self.region(tile)).cut_out()[1]

    def halo_window(self, tile: WorkTile) -> tuple[slice, slice]:
        """Rows and columns of the picture that those features depend on."""
        rows, columns = (
            slice(max(0, part.start - self.halo), min(n, part.stop + self.halo))
            for part, n in zip(self.window(tile), self.lr, strict=True)
        )
        return rows, columns

    def local_region(self, tile: WorkTile) -> Region:
        """The tile in pixels of its window."""
        (rows, columns), (top, left, bottom, right) = self.window(tile), self.region(tile)
        return top - rows.start, left - columns.start, bottom - rows.start, right - columns.start

    @cached_property
    def _points(self) -> tuple[Tensor, Tensor, Tensor]:
        """Rows and columns of the integral's points, and the tile of each."""
        rows, columns = golden_lattice(self.points or 0, self.whole, torch.device("cpu"))
        y, x = (
            torch.bucketize(places, torch.tensor(edges[1:]), right=True)
            for places, edges in zip((rows, columns), self.edges, strict=True)
        )
        return rows, columns, y * (len(self.edges[1]) - 1) + x

    def tiles_with_points(self) -> list[WorkTile]:
        """The tiles in which points of the integrals lie."""
        return [self.tile(index) for index in self._points[2].unique().tolist()]

    def point_windows(self, tile: WorkTile) -> PointWindows:
        """The points in a tile, each with a window of its own."""
        return PointWindows(self.sampling, self.halo, *self._points_in(tile))

    @property
    def window_share(self) -> float:
        """Pixels in the windows of all points for each pixel of the picture."""
        return (self.points or 0) * window_side(self.halo) ** 2 / (self.lr[0] * self.lr[1])

    def _points_in(self, tile: WorkTile) -> tuple[Tensor, Tensor]:
        rows, columns, owner = self._points
        mine = owner == tile.index
        return rows[mine], columns[mine]

    def local_points(self, tile: WorkTile) -> Tensor:
        """Coordinates (1, n, 2) of the points in a tile, in [-1, 1] of its window."""
        coords = self.sampling.points(*self._points_in(tile))
        axes: list[Tensor] = []
        for axis, (part, n) in enumerate(zip(self.window(tile), self.lr, strict=True)):
            place = (coords[..., axis] + 1) * (n / 2) - part.start
            axes.append(place * (2 / (part.stop - part.start)) - 1)
        return torch.stack(axes, dim=-1)

    def __getstate__(self) -> dict[str, object]:
        """The fields alone: what follows from them is not sent to workers."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def _edges(n: int, start: int, length: int, side: int) -> list[int]:
    """Edges in 0 … n with steps of `side` from `start`, such that start + length is an edge too."""
    stop = start + length
    before = range(start - side, 0, -side)
    after = range(stop + side, n, side)
    return sorted({0, *before, *range(start, stop, side), stop, *after, n})
