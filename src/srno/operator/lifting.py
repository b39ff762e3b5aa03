"""Lifting L: from features on the low-resolution grid to the latent function z_0 at any coordinates."""

from math import pi

import torch
from torch import Tensor, nn

from srno.config import SRNOConfig
from srno.operator.grid import SHIFT, nearest_pixel, neighbours, offset

FREQUENCIES = 5
"""Octaves of the position embedding in the nearest-neighbour variant."""


def pick(features: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """(B, n, C) features (B, C, h, w) at pixels (B, n) of rows and columns."""
    flat = features.flatten(2).transpose(1, 2)
    index = rows * features.shape[-1] + columns
    return flat.gather(1, index.unsqueeze(-1).expand(-1, -1, flat.shape[-1]))


class InterpolationFreeLifting(nn.Module):
    """One linear map of [δ_1..δ_4, s_1·E(x̂_1)..s_4·E(x̂_4), c]: weighted neighbours side by side, never summed."""

    def __init__(self, config: SRNOConfig) -> None:
        super().__init__()
        self.linear = nn.Linear(4 * (config.encoder.channels + 2) + 2, config.d_z)

    def forward(self, features: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), coords (B, n, 2), cell (B, 2) → z_0 (B, n, d_z)."""
        y = neighbours(coords[..., 0], features.shape[-2])
        x = neighbours(coords[..., 1], features.shape[-1])
        offsets: list[Tensor] = []
        weighted: list[Tensor] = []
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):  # (-,-) (-,+) (+,-) (+,+)
            offsets.append(torch.stack([y.delta[..., i], x.delta[..., j]], dim=-1))
            share = (y.share[..., i] * x.share[..., j]).to(features.dtype)
            weighted.append(share.unsqueeze(-1) * pick(features, y.index[..., i], x.index[..., j]))
        c = cell.unsqueeze(1).expand(-1, coords.shape[1], -1)
        parts = [part.to(features.dtype) for part in (*offsets, *weighted, c)]
        return self.linear(torch.cat(parts, dim=-1))


class NearestLifting(nn.Module):
    """The paper's -i, described there in one sentence; our reading: [E(x̂), sin/cos(2^k π δ), c] of the nearest x̂."""

    def __init__(self, config: SRNOConfig) -> None:
        super().__init__()
        self.linear = nn.Linear(config.encoder.channels + 4 * FREQUENCIES + 2, config.d_z)

    def forward(self, features: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), coords (B, n, 2), cell (B, 2) → z_0 (B, n, d_z)."""
        rows = nearest_pixel(coords[..., 0] + SHIFT, features.shape[-2])
        columns = nearest_pixel(coords[..., 1] + SHIFT, features.shape[-1])
        delta = torch.stack(
            [
                offset(coords[..., 0], rows, features.shape[-2]),
                offset(coords[..., 1], columns, features.shape[-1]),
            ],
            dim=-1,
        )
        c = cell.unsqueeze(1).expand(-1, coords.shape[1], -1)
        parts = (pick(features, rows, columns), position_embedding(delta), c)
        return self.linear(torch.cat([part.to(features.dtype) for part in parts], dim=-1))


def position_embedding(delta: Tensor) -> Tensor:
    """(..., 2) offsets to (..., 4·FREQUENCIES): all sines, then all cosines, octave by octave, each (y, x)."""
    octaves = pi * 2.0 ** torch.arange(FREQUENCIES, device=delta.device, dtype=delta.dtype)
    angle = (octaves.unsqueeze(-1) * delta.unsqueeze(-2)).flatten(-2)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)
