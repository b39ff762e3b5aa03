"""A coarse map of a picture's detail, and crops placed by it."""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

BLOCK_SIDE = 16
"""Side in pixels of a block of the map."""


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
