"""Projection P: from the latent function to RGB, and the bilinear skip that it is added to."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from srno.config import SRNOConfig
from srno.operator.sampling import Chunk, Sampling


class Projection(nn.Module):
    """Two pointwise linear maps with gelu between."""

    def __init__(self, config: SRNOConfig) -> None:
        super().__init__()
        self.hidden = nn.Linear(config.d_z, config.projection_width)
        self.rgb = nn.Linear(config.projection_width, 3)

    def forward(self, z: Tensor) -> Tensor:
        """(B, n, d_z) → (B, n, 3)."""
        return self.rgb(F.gelu(self.hidden(z)))


def bilinear(image: Tensor, coords: Tensor) -> Tensor:
    """image (B, 3, h, w) at coords (B, n, 2), clamped at the border → (B, n, 3) in the coordinates' precision."""
    dtype = torch.promote_types(image.dtype, coords.dtype)
    grid = coords.to(dtype).flip(-1).unsqueeze(1)
    sampled = F.grid_sample(image.to(dtype), grid, mode="bilinear", padding_mode="border", align_corners=False)
    return sampled.squeeze(2).transpose(1, 2)


@dataclass(frozen=True)
class GridSkip:
    """Bilinear values of a picture at the pixels of a sampling."""

    image: Tensor
    """(3, h, w)"""
    y: tuple[Tensor, Tensor, Tensor]
    """(n,) lower and upper pixel, and the weight of the upper"""
    x: tuple[Tensor, Tensor, Tensor]

    def __call__(self, chunk: Chunk) -> Tensor:
        """(3, rows, columns)"""
        low, high, weight = (part[chunk.top : chunk.bottom] for part in self.y)
        rows = torch.lerp(self.image[:, low], self.image[:, high], weight.unsqueeze(1))
        low, high, weight = (part[chunk.left : chunk.right] for part in self.x)
        return torch.lerp(rows[..., low], rows[..., high], weight)


def make_skip(image: Tensor, sampling: Sampling) -> GridSkip:
    """image (1, 3, h, w), clamped at its border."""
    y, x = (_axis(sampling.axis(i, image.device), sampling.lr[i], image.dtype) for i in (0, 1))
    return GridSkip(image[0], y, x)


def _axis(coords: Tensor, n: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    place = ((coords + 1) * (n / 2) - 0.5).clamp(0, n - 1)
    low = place.floor().long()
    return low, (low + 1).clamp(max=n - 1), (place - low).to(dtype)
