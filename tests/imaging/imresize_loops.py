"""MATLAB's bicubic `imresize` as it is documented, in loops and float64.

The cubic kernel has a = -1/2 and is stretched by the factor when the picture becomes smaller (antialiasing). The
weights of an output pixel sum to 1, pixels beyond the border repeat the edge, and 8-bit values are rounded after each
axis. The axis with the smaller scale comes first, rows if both are equal. Later releases mirror the picture at the
border; the files of the benchmark sets were made by one that repeats the edge.
"""

import math

import numpy as np
from numpy.typing import NDArray


def imresize(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """(h, w, c) → (*size, c)."""
    scales = [size[axis] / image.shape[axis] for axis in (0, 1)]
    for axis in sorted((0, 1), key=lambda axis: scales[axis]):
        image = _along_axis(image, axis, size[axis])
    return image


def _along_axis(image: NDArray[np.uint8], axis: int, length: int) -> NDArray[np.uint8]:
    source = np.moveaxis(image, axis, 0)
    resized = np.zeros((length, *source.shape[1:]), np.uint8)
    for position in range(length):
        weights = _weights(position, source.shape[0], length)
        total = sum(weights.values())
        for place in np.ndindex(source.shape[1:]):
            value = sum(weight * float(source[index, *place]) for index, weight in weights.items()) / total
            resized[position, *place] = min(max(math.floor(value + 0.5), 0), 255)
    return np.moveaxis(resized, 0, axis)


def _weights(position: int, old_length: int, new_length: int) -> dict[int, float]:
    """{index of a source pixel: its weight, before they are made to sum to 1}."""
    scale = new_length / old_length
    stretch = max(1 / scale, 1)
    centre = (position + 0.5) / scale - 0.5
    weights: dict[int, float] = {}
    for tap in range(math.floor(centre - 2 * stretch), math.ceil(centre + 2 * stretch) + 1):
        index = min(max(tap, 0), old_length - 1)
        weights[index] = weights.get(index, 0.0) + _cubic((centre - tap) / stretch)
    return weights


def _cubic(x: float) -> float:
    x = abs(x)
    if x <= 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0
