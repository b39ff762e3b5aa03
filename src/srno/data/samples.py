"""One training sample: an HR crop, its LR version, and the points at which the operator is supervised."""

from bisect import bisect_right
from dataclasses import dataclass, field
from math import isqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srno.data.degradation import DEGRADATIONS, PhotoSettings
from srno.errors import SRNOError

BLOCK_SIDE = 16
"""Side in pixels of a block of the map of detail."""


@dataclass(frozen=True, kw_only=True)
class SampleConfig:
    """Settings of a sample. HR crops have round(patch·r)² pixels with r drawn uniformly from r_min to r_max."""

    patch: int
    """Side p of the LR crop."""
    points: int
    """Number n_q of HR pixels that supervise one sample."""
    r_min: float = 1.0
    """Smallest factor."""
    r_max: float = 4.0
    """Largest factor."""
    sampling: Literal["random", "sequential"] = "random"
    """The points are drawn at random without replacement, or form one contiguous window at a random position."""
    detail: float = 0.0
    """Share of the crops that are placed by detail rather than uniformly, 0 to 1."""
    flat: float = 0.0
    """Share of the crops that are filled with one colour, 0 to 1; photographs have few saturated flat regions."""
    degradation: str = "bicubic"
    """How the LR crop is made from the HR crop."""
    photo: PhotoSettings = field(default_factory=PhotoSettings)
    """Strength of the degradation `photo`."""
    allow_small: bool = False
    """Use pictures smaller than the largest crop, at the factors that fit, instead of skipping them."""
    repeat: int = 1
    """How often an epoch visits each picture."""

    def __post_init__(self) -> None:
        if self.patch < 1 or self.points < 1 or self.repeat < 1:
            raise SRNOError(f"patch {self.patch}, points {self.points}, repeat {self.repeat}: each must be at least 1")
        if not 1 <= self.r_min <= self.r_max:
            raise SRNOError(f"r_min {self.r_min:g}, r_max {self.r_max:g}: need 1 ≤ r_min ≤ r_max")
        for name, share in (("detail", self.detail), ("flat", self.flat)):
            if not 0 <= share <= 1:
                raise SRNOError(f"{name} {share:g} is not a share; give a number from 0 to 1")
        if self.sampling not in ("random", "sequential"):
            raise SRNOError(f"sampling '{self.sampling}' is unknown; choose random or sequential")
        if self.degradation not in DEGRADATIONS:
            raise SRNOError(f"degradation '{self.degradation}' is unknown; choose from {', '.join(DEGRADATIONS)}")
        side = round(self.patch * self.r_min)
        if self.points > side**2:
            raise SRNOError(f"points {self.points}: the smallest crop has {side}² pixels; give at most {side**2}")
        if self.sampling == "sequential" and window(self.points)[1] > side:
            rows, columns = window(self.points)
            raise SRNOError(
                f"points {self.points}: a window of {rows}×{columns} does not fit the smallest crop {side}²"
            )

    @property
    def smallest(self) -> int:
        """Shortest side of a usable picture."""
        return round(self.patch * (self.r_min if self.allow_small else self.r_max))


class DrawnSample(NamedTuple):
    """Bytes as they come from the picture, coordinates as the operator takes them."""

    lr: NDArray[np.uint8]
    """(p, p, 3)"""
    coords: NDArray[np.float32]
    """(n_q, 2), rows first"""
    cell: tuple[float, float]
    """(2/r_y, 2/r_x) with r the true factor, after the crop's side was rounded"""
    target: NDArray[np.uint8]
    """(n_q, 3)"""


def window(points: int) -> tuple[int, int]:
    """The squarest (rows, columns) with rows·columns = points, rows ≤ columns."""
    rows = next(r for r in range(isqrt(points), 0, -1) if points % r == 0)
    return rows, points // rows


def draw_sample(
    picture: NDArray[np.uint8], detail: NDArray[np.float64], config: SampleConfig, rng: np.random.Generator
) -> DrawnSample:
    """Draw a sample of `picture` (H, W, 3) with the running detail sums `detail`; depends only on its arguments."""
    size = picture.shape[0], picture.shape[1]
    n = _draw_side(min(size), config, rng)
    by_detail = rng.random() < config.detail
    top, left = place_by_detail(detail, size, n, rng) if by_detail else place_anywhere(size, n, rng)
    crop = picture[top : top + n, left : left + n].copy()
    if config.flat and rng.random() < config.flat:
        crop[:] = _draw_colour(rng)
    rows, columns = _draw_points(n, config, rng)
    flip_y, flip_x, transpose = (bool(bit) for bit in rng.integers(2, size=3))
    lr = DEGRADATIONS[config.degradation](crop, config.patch, rng, config.photo)
    cell = 2 * config.patch / n
    return DrawnSample(
        lr=_orient(lr, flip_y, flip_x, transpose),
        coords=_coordinates(rows, columns, n, flip_y, flip_x, transpose),
        cell=(cell, cell),
        target=crop[rows, columns],
    )


def _draw_colour(rng: np.random.Generator) -> NDArray[np.int64]:
    """RGB; each channel is 0 or 255 half of the time, else uniform from 0 to 255."""
    ends = 255 * rng.integers(2, size=3)
    return np.where(rng.random(3) < 0.5, ends, rng.integers(256, size=3))


def _draw_side(shortest: int, config: SampleConfig, rng: np.random.Generator) -> int:
    """Side of the HR crop for a picture whose shorter side is `shortest`."""
    r_max = min(config.r_max, max(config.r_min, shortest / config.patch))
    return min(round(config.patch * rng.uniform(config.r_min, r_max)), shortest)


def _draw_points(n: int, config: SampleConfig, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns (n_q,) of the supervised pixels in a crop of n²."""
    if config.sampling == "random":
        rows, columns = np.divmod(rng.choice(n * n, config.points, replace=False, shuffle=False), n)
        return rows, columns
    height, width = window(config.points)
    top, left = rng.integers(n - height + 1), rng.integers(n - width + 1)
    rows, columns = np.divmod(np.arange(config.points), width)
    return rows + top, columns + left


def _orient(lr: NDArray[np.uint8], flip_y: bool, flip_x: bool, transpose: bool) -> NDArray[np.uint8]:
    """(p, p, 3) -> flipped, then transposed."""
    flipped = lr[:: -1 if flip_y else 1, :: -1 if flip_x else 1]
    return flipped.transpose(1, 0, 2) if transpose else flipped


def _coordinates(
    rows: NDArray[np.int64], columns: NDArray[np.int64], n: int, flip_y: bool, flip_x: bool, transpose: bool
) -> NDArray[np.float32]:
    """Positions of the pixels of a crop of n² after `_orient`, in [-1, 1]²: (n_q, 2).

    Moving n_q points is cheaper than turning the HR crop. The grid is symmetric about 0, so a flip changes the sign.
    """
    y, x = (2 * rows + 1 - n) / n, (2 * columns + 1 - n) / n
    y, x = -y if flip_y else y, -x if flip_x else x
    return np.stack((x, y) if transpose else (y, x), axis=-1).astype(np.float32)


def blocks(height: int, width: int) -> tuple[int, int]:
    """Rows and columns of the map; the last ones may be cut by the picture's edge."""
    return -(-height // BLOCK_SIDE), -(-width // BLOCK_SIDE)


def detail_map(picture: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(H, W, 3) -> running sum over the blocks, row by row, of the gradient's length.

    The length and not its square: with the square, one hard edge outweighs a large textured region.
    """
    red, green, blue = (picture[..., channel].astype(np.int16) for channel in range(3))
    gray = red + green + blue  # several times as fast as a sum over the last axis
    height, width = gray.shape
    length = np.zeros((height, width), np.float32)
    down, right = np.diff(gray, axis=0)[:, :-1], np.diff(gray, axis=1)[:-1]
    np.hypot(down, right, out=length[:-1, :-1], dtype=np.float32)
    tops, lefts = range(0, height, BLOCK_SIDE), range(0, width, BLOCK_SIDE)
    sums = np.add.reduceat(np.add.reduceat(length, tops, axis=0), lefts, axis=1)
    return np.cumsum(sums, dtype=np.float64)


def place_by_detail(
    running: NDArray[np.float64], size: tuple[int, int], side: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Top left corner of a crop of side² in a picture of `size`, more likely where its gradient is large.

    Draws a pixel by detail, then one of the crops that contain it, all equally likely. A crop centred on the pixel and
    clamped to the picture would favour the edges.
    """
    block = bisect_right(running, rng.random() * running[-1])
    if block >= running.size:  # a picture without any gradient
        return place_anywhere(size, side, rng)
    row_and_column = divmod(block, blocks(*size)[1])
    top, left = (_start_around(index, length, side, rng) for index, length in zip(row_and_column, size, strict=True))
    return top, left


def place_anywhere(size: tuple[int, int], side: int, rng: np.random.Generator) -> tuple[int, int]:
    """Top left corner of a crop of side² in a picture of `size`, all positions equally likely."""
    return int(rng.integers(size[0] - side + 1)), int(rng.integers(size[1] - side + 1))


def _start_around(block: int, length: int, side: int, rng: np.random.Generator) -> int:
    """Start of an interval of `side` within `length` that contains a random pixel of block number `block`."""
    pixel = int(rng.integers(block * BLOCK_SIDE, min((block + 1) * BLOCK_SIDE, length)))
    return int(rng.integers(max(0, pixel - side + 1), min(pixel, length - side) + 1))
