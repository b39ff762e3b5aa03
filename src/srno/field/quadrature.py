"""The points that a kernel integral is estimated from: how many, and which of the output's pixels."""

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from srno.errors import SRNOError

Integral: TypeAlias = int | Literal["auto", "exact"]
"""How the kernel integral is computed: over every output pixel, from this many of them, or `auto`."""

AUTO_POINTS = (24576, 131072)
"""The least and the most points of `auto`."""
PIXELS_PER_POINT = 32
"""Output pixels for each point of `auto` between the two."""
GOLDEN_RATIO = 0.6180339887498949
"""The positive root of x² = 1 - x."""
PLASTIC_NUMBER = 1.324717957244746
"""The real root of x³ = x + 1."""


def integral_points(integral: Integral, size: tuple[int, int]) -> int | None:
    """Return the number of pixels of an output of `size` that the integral is estimated from; None for all.

    `auto` is to cost no picture 0.005 dB; docs/weights.md has what was measured.
    """
    if integral == "exact":
        return None
    pixels = size[0] * size[1]
    points = min(max(AUTO_POINTS[0], pixels // PIXELS_PER_POINT), AUTO_POINTS[1]) if integral == "auto" else integral
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SRNOError(f"integral {integral!r}: choose auto, exact or a number of points such as 16384")
    return points if points < pixels else None


def golden_lattice(n: int, size: tuple[int, int], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows and columns (n,) of pixels on a lattice over a grid (height, width), row after row.

    Rows take equal steps and columns steps of the golden ratio, so the points are spread evenly for any number of them
    and any shape of the grid: stretched along an axis, this lattice is still one without short vectors. All positions
    within a pixel of the picture are visited about equally often.
    """
    count = torch.arange(n, dtype=torch.int64, device=device)
    rows = (2 * count + 1) * size[0] // (2 * n)
    columns = (0.5 + count.double() * GOLDEN_RATIO) % 1 * size[1]
    return rows, columns.long()


def low_discrepancy(n: int, size: tuple[int, int], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows and columns (n,) of pixels that are spread evenly over a grid (height, width), in a sequence of any length.

    Its steps are irrational (Roberts' R₂). Sobol points are dyadic: on grids whose sides are multiples of powers of two
    they miss some positions within a pixel of the picture, for any number of points.
    """
    count = torch.arange(1, n + 1, dtype=torch.float64, device=device)
    rows, columns = ((0.5 + count * PLASTIC_NUMBER**-power) % 1 for power in (1, 2))
    return (rows * size[0]).long(), (columns * size[1]).long()
