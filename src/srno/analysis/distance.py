"""How far the kernel matrices of two pictures, scales or regions are apart."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


def kernel_distance(first: Array, second: Array) -> Array:
    """Distance of M (T, heads, width, width) of two fields, for each layer: (T,).

    It is the Frobenius norm of the difference over the mean of both norms: 0 for equal matrices, √2 for orthogonal
    ones of equal norm, 2 for opposite ones.
    """
    difference, *norms = (np.linalg.norm(M.reshape(len(M), -1), axis=1) for M in (first - second, first, second))
    return 2 * difference / (norms[0] + norms[1])


def halves(pixels: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """The left, right, upper and lower half of a picture (h, w, 3)."""
    height, width = pixels.shape[0] // 2, pixels.shape[1] // 2
    return {
        "left": pixels[:, :width],
        "right": pixels[:, -width:],
        "upper": pixels[:height],
        "lower": pixels[-height:],
    }
