"""Bicubic resampling as in Pillow, and as in MATLAB, which made the LR files of the benchmark sets.

All arrays are (height, width) or (height, width, channels), and every size here is (height, width), rows first.
Both use the cubic kernel with a = -1/2, widened by the factor when scaling down, and round to 8 bits after each axis.
Pillow truncates the kernel at the border and resamples the columns first, with fixed-point weights; MATLAB repeats the
edge pixels and resamples the rows first.
"""

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def pillow_bicubic(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Pillow's bicubic of an 8-bit gray or RGB picture: (h, w[, 3]) → (*size[, 3])."""
    height, width = size
    return np.array(Image.fromarray(image).resize((width, height), Image.Resampling.BICUBIC))


def matlab_bicubic(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """MATLAB's bicubic `imresize` of an 8-bit picture, value for value: (h, w[, c]) → (*size[, c])."""
    rows = _round_half_up(_resample_rows(image.astype(np.float32), size[0]))
    columns = _resample_rows(rows.astype(np.float32).swapaxes(0, 1), size[1])
    return np.ascontiguousarray(_round_half_up(columns).swapaxes(0, 1))


def matlab_bicubic_float(image: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """The same kernel and border in floating point, neither rounded nor clipped: (h, w[, c]) → (*size[, c])."""
    rows = _resample_rows(image, size[0])
    return np.ascontiguousarray(_resample_rows(rows.swapaxes(0, 1), size[1]).swapaxes(0, 1))


def _resample_rows(image: NDArray[np.float32], height: int) -> NDArray[np.float32]:
    """Resample the first axis: (h, …) → (height, …)."""
    h, *rest = image.shape
    # The kernel extends two (widened) pixels beyond a centre inside the picture: with this padding it is not truncated.
    padding = math.ceil(2 * max(h / height, 1)) + 1
    flat = np.pad(image.reshape(h, -1), ((padding, padding), (0, 0)), mode="edge")
    width = flat.shape[1]
    box = (0, padding, width, padding + h)
    resized = Image.fromarray(flat).resize((width, height), Image.Resampling.BICUBIC, box=box)
    return np.asarray(resized, dtype=np.float32).reshape(height, *rest)


def _round_half_up(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.clip(np.floor(values + 0.5), 0, 255).astype(np.uint8)
