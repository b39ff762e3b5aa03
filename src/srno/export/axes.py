"""Positions of output pixels in the picture, one axis at a time, in integers.

On an axis of n picture pixels and N output pixels, the centre of output pixel i is at (2i + 1)·n / 2N picture pixels.
Numerator and denominator are integers, so the neighbours are exact without float64, which few runtimes support. Some
runtimes compute int64 as int32: all numbers are below 2³¹ as long as 2·n·N is.
"""

from dataclasses import dataclass
from typing import Literal

from srno.export.graph import Graph
from srno.export.value import Dim, Value
from srno.field.quadrature import AUTO_POINTS, GOLDEN_RATIO, PIXELS_PER_POINT
from srno.operator.grid import BORDER_SHIFT
from srno.operator.sampling import LARGEST_TRAINING_SCALE, WINDOW_MARGIN

SHIFTS_PER_PIXEL = round(2 / BORDER_SHIFT)
"""`operator.grid` shifts queries by n / this many pixels before it looks up the pixel that contains them."""
TURN_TABLE = 512
"""Entries of the table for the low digits of a point's number."""
HALF_TURN_BITS = 15
"""Turns have 30 bits and are multiplied by a side in two halves, each product below 2³¹."""
SIDE_DIGIT = 256
"""A side is multiplied in two digits to this base, for the same reason."""


@dataclass(frozen=True)
class Near:
    """One picture pixel near each of n output pixels, along one axis."""

    index: Value
    """(n,) int64"""
    delta: Value
    """(n,) float32 signed distance x - x̂ in half pixels"""


@dataclass(frozen=True)
class Axis:
    """Output pixels along one axis."""

    lr: Value
    """(1,) pixels of the picture"""
    size: Value
    """(1,) pixels of the whole output"""
    places: Value
    """(n,) indices of the output pixels to compute"""
    first: Value | None = None
    """(1,) first row or column of a window of the features; None for all of them"""

    @property
    def dim(self) -> Dim:
        """Number of output pixels to compute."""
        return self.places.shape[0]

    def cell(self) -> Value:
        """(1,) float32 size of an output pixel in half picture pixels, clamped to that of ×4 beyond ×4."""
        return ((self.lr * 2).cast("float32") / self.size.cast("float32")).at_least(2 / LARGEST_TRAINING_SCALE)

    def nearest(self) -> Near:
        """The pixel that contains the centre."""
        return self._near(self._pixel(self._centres(), self.size * 2))

    def neighbours(self) -> tuple[tuple[Near, Near], tuple[Value, Value]]:
        """The lower and upper neighbour of each centre, equal at the border, and their shares (n,), float32."""
        lower = self._pixel(self._centres() - self.size, self.size * 2)
        near = self._near(lower), self._near(lower + 1)
        graph, (below, above) = lower.graph, (each.delta.apply("Abs") for each in near)
        total = below + above
        coincide, half, one = total <= 0.0, graph.constant(0.5, "float32"), graph.constant(1.0, "float32")
        divisor = graph.where(coincide, one, total)
        return near, (
            graph.where(coincide, half, above / divisor),
            graph.where(coincide, half, below / divisor),
        )

    def corners(self) -> tuple[Value, Value]:
        """The pixel that contains the upper left corner of each output pixel (n,), and the offset in it, float32."""
        corner = self.places * self.lr
        index = self._inside(self._pixel(corner, self.size))
        return self.local(index), (corner - index * self.size).cast("float32") / self.size.cast("float32")

    def between(self, factor: int = 1) -> tuple[Value, Value, Value]:
        """Bilinear stencil in a picture of factor·lr pixels: lower pixel, upper pixel and its weight, each (n,)."""
        n, denominator = self.lr * factor, self.size * 2
        centre = (self._centres() * factor - self.size).at_least(0).at_most(denominator * (n - 1))
        low = centre / denominator
        weight = (centre - low * denominator).cast("float32") / denominator.cast("float32")
        return low, (low + 1).at_most(n - 1), weight

    def local(self, index: Value) -> Value:
        """Convert indices of the picture to indices of the window of the features."""
        return index if self.first is None else index - self.first

    def _centres(self) -> Value:
        """(n,) centres in units of 1/(2·size) picture pixels."""
        return (self.places * 2 + 1) * self.lr

    def _pixel(self, numerator: Value, denominator: Value) -> Value:
        """The pixel that contains numerator/denominator, or the next one if its border is within the shift.

        The numerator is not below minus the denominator; integers are divided toward zero.
        """
        pixel = (numerator + denominator) / denominator - 1
        gap = (pixel + 1) * denominator - numerator
        return pixel + (gap <= self.lr * denominator / SHIFTS_PER_PIXEL).cast("int64")

    def _inside(self, index: Value) -> Value:
        return index.at_least(0).at_most(self.lr - 1)

    def _near(self, pixel: Value) -> Near:
        index = self._inside(pixel)
        offset = self._centres() - (index * 2 + 1) * self.size
        return Near(self.local(index), offset.cast("float32") / self.size.cast("float32"))


def whole_axes(graph: Graph, features: Value, size: Value) -> tuple[Axis, Axis]:
    """All output pixels: features (1, C, h, w), size (2,) = (H, W)."""
    height, width = _sides(size)
    zero = graph.constant([0], "int64")
    y = Axis(features.length(2), height, graph.arange(zero, height, "H"))
    return y, Axis(features.length(3), width, graph.arange(zero, width, "W"))


def tile_axes(graph: Graph, features: Value, size: Value, tile: Value) -> tuple[Axis, Axis, Value]:
    """The output pixels of a tile (4,) = (top, left, bottom, right), and the window of the features for them."""
    window, axes = features, list[Axis]()
    for i, (side, dim) in enumerate(zip(_sides(size), ("rows", "columns"), strict=True)):
        lr, start, stop = features.length(2 + i), tile.slice(0, i, i + 1, 1), tile.slice(0, i + 2, i + 3, 1)
        first = (start * lr / side - WINDOW_MARGIN).at_least(0)
        last = (stop * lr / side + WINDOW_MARGIN + 1).at_most(lr)
        window = window.slice(2 + i, first, last, f"window_{dim}")
        axes.append(Axis(lr, side, graph.arange(start, stop, dim), first))
    return axes[0], axes[1], window


def point_axes(graph: Graph, features: Value, size: Value, points: int | Literal["auto"]) -> tuple[Axis, Axis]:
    """Rows and columns of pixels, those of `field.quadrature.golden_lattice`; of all pixels if there are not more."""
    height, width = _sides(size)
    total = height * width
    if points == "auto":
        least, most = AUTO_POINTS
        n = (total / PIXELS_PER_POINT).at_least(least).at_most(most)
    else:
        n, most = graph.constant([points], "int64"), points
    number = graph.arange(graph.constant([0], "int64"), n.at_most(total), "points")
    all_rows, few = number / width, total <= n
    rows = graph.where(few, all_rows, _in_equal_steps(number, n, height))
    columns = graph.where(few, number - all_rows * width, _in_golden_steps(graph, number, most, width))
    return Axis(features.length(2), height, rows), Axis(features.length(3), width, columns)


def cell_of(y: Axis, x: Axis) -> Value:
    """(1, 2) float32 cell of both axes."""
    return y.lr.graph.concat([y.cell(), x.cell()], 0).expand_dims(0)


def _sides(size: Value) -> tuple[Value, Value]:
    """Height and width, each (1,)."""
    return size.slice(0, 0, 1, 1), size.slice(0, 1, 2, 1)


def _in_equal_steps(number: Value, n: Value, side: Value) -> Value:
    """Pixels ⌊side·(2·number + 1) / 2n⌋, by long division."""
    numerator, denominator, high = number * 2 + 1, n * 2, side / SIDE_DIGIT
    first = numerator * high
    quotient = first / denominator
    rest = (first - quotient * denominator) * SIDE_DIGIT + numerator * (side - high * SIDE_DIGIT)
    return quotient * SIDE_DIGIT + rest / denominator


def _in_golden_steps(graph: Graph, number: Value, most: int, side: Value) -> Value:
    """Pixels ⌊side·((½ + number·φ) mod 1)⌋, where numbers are below `most` and φ is the golden ratio."""
    unit, half = 1 << 2 * HALF_TURN_BITS, 1 << HALF_TURN_BITS
    coarse = [int((0.5 + i * GOLDEN_RATIO) % 1 * unit) for i in range(0, most, TURN_TABLE)]
    fine = [int(i * GOLDEN_RATIO % 1 * unit) for i in range(TURN_TABLE)]
    block = number / TURN_TABLE
    turn = graph.table("turns.coarse", coarse).gather(block)
    turn = turn + graph.table("turns.fine", fine).gather(number - block * TURN_TABLE)
    turn = turn - turn / unit * unit
    high = turn / half
    low = turn - high * half
    return (high * side + low * side / half) / half
