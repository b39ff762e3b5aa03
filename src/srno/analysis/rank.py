"""Ranks of a matrix from its singular values."""

import numpy as np
from numpy.typing import NDArray


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
