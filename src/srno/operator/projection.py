"""Projection P: from the latent function to RGB, and the bilinear skip that it is added to."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from srno.config import SRNOConfig


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
