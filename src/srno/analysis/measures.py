"""Measures of what was summarised: ranks from singular values, and distances between kernels."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


def effective_rank(singular_values: NDArray[np.floating]) -> float:
    """Compute exp(-Σ p log p) with p_i = σ_i / Σσ: 1 for one direction, d for d equally strong ones.

    >>> import numpy as np
    >>> round(effective_rank(np.ones(7)), 6)
    7.0
    """
    shares = singular_values / singular_values.sum()
    positive = shares[shares > 0]
    return float(np.exp(-(positive * np.log(positive)).sum()))


def numerical_rank(singular_values: NDArray[np.floating], tolerance: float) -> int:
    """Count the singular values above `tolerance` times the largest one.

    >>> import numpy as np
    >>> numerical_rank(np.array([1.0, 0.02, 0.003]), 1e-2)
    2
    """
    return int((singular_values > tolerance * singular_values.max()).sum())


def single_precision_tolerance(points: int) -> float:
    """The tolerance of `matrix_rank` in NumPy and PyTorch for a matrix of float32 with `points` rows: n · 2⁻²³."""
    return points * 2.0**-23


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
