"""Tolerances of all numeric tests, by dtype."""

import torch
from torch import Tensor

TOLERANCE = {
    torch.float64: 1e-10,
    torch.float32: 2e-5,
    torch.float16: 5e-3,
    torch.bfloat16: 3e-2,
}
"""Largest allowed error relative to the largest entry, by the dtype of the computation."""


def error(actual: Tensor, expected: Tensor) -> float:
    """Largest difference relative to the largest expected entry."""
    assert actual.shape == expected.shape, f"{tuple(actual.shape)} instead of {tuple(expected.shape)}"
    difference = (actual.detach().double() - expected.detach().double()).abs().max().item()
    return difference / max(expected.detach().double().abs().max().item(), 1e-30)


def assert_close(actual: Tensor, expected: Tensor, dtype: torch.dtype | None = None) -> None:
    """Check equality within the tolerance of `dtype`, by default the coarser of the two."""
    coarser = max((actual.dtype, expected.dtype), key=TOLERANCE.__getitem__)
    tolerance = TOLERANCE[dtype or coarser]
    off = error(actual, expected)
    assert off <= tolerance, f"off by {off:.2e} of the largest entry, {tolerance:.0e} allowed"
