"""Points of Ω = [-1, 1]² and the low-resolution pixels around them. Everything is per axis: Ω is a product."""

from dataclasses import dataclass

import torch
from torch import Tensor

BORDER_SHIFT = 1e-6
"""Assigns queries on a pixel border to the upper pixel; smaller than any pixel, larger than fp32 rounding."""


@dataclass(frozen=True)
class Neighbours:
    """The lower and upper neighbour along one axis of n pixels, for queries of shape (...)."""

    index: Tensor
    """(..., 2) pixel indices, int64; equal at the border."""
    delta: Tensor
    """(..., 2) signed distance x - x̂ in half pixels."""
    share: Tensor
    """(..., 2) weight of each: the other one's distance over the sum of both, ½ if both are zero."""


def pixel_centres(n: int, *, device: torch.device | str | None = None, dtype: torch.dtype = torch.float64) -> Tensor:
    """(n,) centres of n equal pixels of [-1, 1]."""
    return (2 * torch.arange(n, device=device, dtype=dtype) + 1) / n - 1


def make_grid(
    height: int, width: int, *, device: torch.device | str | None = None, dtype: torch.dtype = torch.float64
) -> Tensor:
    """(height, width, 2) pixel centres of a whole picture, each (y, x)."""
    axes = (pixel_centres(height, device=device, dtype=dtype), pixel_centres(width, device=device, dtype=dtype))
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)


def cell_of(scale_y: float, scale_x: float, *, batch: int = 1, device: torch.device | str | None = None) -> Tensor:
    """(batch, 2) size (2/r_y, 2/r_x) of an output pixel, in half low-resolution pixels like every δ."""
    return torch.tensor([[2 / scale_y, 2 / scale_x]], device=device, dtype=torch.float64).expand(batch, 2)


def nearest_pixel(x: Tensor, n: int) -> Tensor:
    """Index of the pixel that contains each coordinate, clamped to the picture."""
    return torch.floor((x + 1) * (n / 2)).long().clamp(0, n - 1)


def offset(x: Tensor, index: Tensor, n: int) -> Tensor:
    """x - x̂ in half pixels, x̂ the centre of pixel `index`."""
    return (x - ((2 * index + 1).to(x.dtype) / n - 1)) * n


def neighbours(x: Tensor, n: int) -> Neighbours:
    """The two pixels beside each coordinate of one axis."""
    moved = x.unsqueeze(-1) + (x.new_tensor([-1.0, 1.0]) / n + BORDER_SHIFT)
    index = nearest_pixel(moved.clamp(-1 + BORDER_SHIFT, 1 - BORDER_SHIFT), n)
    delta = offset(x.unsqueeze(-1), index, n)
    distance = delta.abs()
    total = distance.sum(-1, keepdim=True)
    apart = total > 0
    share = torch.where(apart, distance.flip(-1) / torch.where(apart, total, 1.0), 0.5)
    return Neighbours(index, delta, share)
