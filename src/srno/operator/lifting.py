"""Lifting L: from features on the low-resolution grid to the latent function z_0 at any coordinates."""

from math import pi

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from srno.config import SRNOConfig
from srno.operator.grid import BORDER_SHIFT, nearest_pixel, neighbours, offset
from srno.operator.latent import AxisWeights, Latent
from srno.operator.sampling import Sampling

POSITION_OCTAVES = 5
"""Octaves of the position embedding in the nearest-neighbour variant."""


def pick(features: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """(B, n, C) features (B, C, h, w) at pixels (B, n) of rows and columns."""
    flat = features.flatten(2).transpose(1, 2)
    index = rows * features.shape[-1] + columns
    return flat.gather(1, index.unsqueeze(-1).expand(-1, -1, flat.shape[-1]))


class InterpolationFreeLifting(nn.Module):
    """One linear map of [δ_1..δ_4, s_1·E(x̂_1)..s_4·E(x̂_4), c]: weighted neighbours are concatenated, not summed."""

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

    def at_points(self, features: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """The same as forward, with one gather for all four neighbours."""
        batch, channels, height, width = features.shape
        n = coords.shape[1]
        y, x = neighbours(coords[..., 0], height), neighbours(coords[..., 1], width)
        picture = torch.arange(batch, device=coords.device).reshape(-1, 1, 1, 1) * height
        index = (picture + y.index.unsqueeze(-1)) * width + x.index.unsqueeze(-2)
        share = (y.share.unsqueeze(-1) * x.share.unsqueeze(-2)).to(features.dtype)
        rows = features.permute(0, 2, 3, 1).reshape(-1, channels)
        weighted = F.embedding(index.reshape(batch, n, 4), rows) * share.reshape(batch, n, 4, 1)
        deltas = [y.delta.unsqueeze(-1).expand(-1, -1, 2, 2), x.delta.unsqueeze(-2).expand(-1, -1, 2, 2)]
        local = [torch.stack(deltas, dim=-1).reshape(batch, n, 8), cell.unsqueeze(1).expand(-1, n, -1)]
        weight = self.linear.weight
        W_features, W_local = weight[:, 8:-2], torch.cat([weight[:, :8], weight[:, -2:]], dim=1)
        z = F.linear(weighted.flatten(2), W_features, self.linear.bias)
        return z + F.linear(torch.cat(local, dim=-1).to(features.dtype), W_local)

    def on_grid(self, features: Tensor, sampling: Sampling, cell: Tensor) -> Latent:
        """z_0 of features (h, w, C) on a grid; cell is (1, 2)."""
        weight, channels = self.linear.weight, features.shape[-1]
        constant = _constant(self.linear, cell)
        local, projections = weight[:, :8].reshape(-1, 2, 2, 2), weight[:, 8:-2].reshape(-1, 2, 2, channels)
        y, x = sampling.axis(0, features.device), sampling.axis(1, features.device)
        return Latent(
            features,
            projections.permute(1, 2, 0, 3).reshape(-1, channels).contiguous(),
            _between(y, sampling.lr[0], local[..., 0].sum(2), constant),
            _between(x, sampling.lr[1], local[..., 1].sum(1), torch.zeros_like(constant)),
        )


class NearestLifting(nn.Module):
    """The paper's -i, described there in one sentence; our reading: [E(x̂), sin/cos(2^k π δ), c] of the nearest x̂."""

    def __init__(self, config: SRNOConfig) -> None:
        super().__init__()
        self.linear = nn.Linear(config.encoder.channels + 4 * POSITION_OCTAVES + 2, config.d_z)

    def forward(self, features: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), coords (B, n, 2), cell (B, 2) → z_0 (B, n, d_z)."""
        rows = nearest_pixel(coords[..., 0] + BORDER_SHIFT, features.shape[-2])
        columns = nearest_pixel(coords[..., 1] + BORDER_SHIFT, features.shape[-1])
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

    def at_points(self, features: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """The same as forward, which has no product to save."""
        return self(features, coords, cell)

    def on_grid(self, features: Tensor, sampling: Sampling, cell: Tensor) -> Latent:
        """z_0 of features (h, w, C) on a grid; cell is (1, 2)."""
        weight, channels = self.linear.weight, features.shape[-1]
        constant = _constant(self.linear, cell)
        embedding = weight[:, channels:-2].reshape(-1, 2 * POSITION_OCTAVES, 2)
        y, x = sampling.axis(0, features.device), sampling.axis(1, features.device)
        return Latent(
            features,
            weight[:, :channels].contiguous(),
            _nearest(y, sampling.lr[0], embedding[..., 0], constant),
            _nearest(x, sampling.lr[1], embedding[..., 1], torch.zeros_like(constant)),
        )


def position_embedding(delta: Tensor) -> Tensor:
    """(..., 2) offsets to (..., 4·POSITION_OCTAVES): all sines, then all cosines, octave by octave, each (y, x)."""
    octaves = pi * 2.0 ** torch.arange(POSITION_OCTAVES, device=delta.device, dtype=delta.dtype)
    angle = (octaves.unsqueeze(-1) * delta.unsqueeze(-2)).flatten(-2)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


def _between(coords: Tensor, n: int, weight: Tensor, constant: Tensor) -> AxisWeights:
    """Two neighbours on each axis; weight (d_z, 2) is that of their offsets."""
    found = neighbours(coords, n)
    summand = found.delta.to(constant.dtype) @ weight.T.to(constant.dtype) + constant
    return AxisWeights(found.index, found.share.to(constant.dtype), summand)


def _nearest(coords: Tensor, n: int, weight: Tensor, constant: Tensor) -> AxisWeights:
    """One neighbour on each axis; weight (d_z, 2·POSITION_OCTAVES) is that of its position embedding."""
    index = nearest_pixel(coords + BORDER_SHIFT, n)
    embedded = position_embedding(offset(coords, index, n).unsqueeze(-1)).to(constant.dtype)
    summand = embedded @ weight.T.to(constant.dtype) + constant
    return AxisWeights(index.unsqueeze(-1), torch.ones_like(embedded[:, :1]), summand)


def _constant(linear: nn.Linear, cell: Tensor) -> Tensor:
    """(d_z,) the part of z_0 that is the same at every point, for a cell (1, 2); in fp32 or better."""
    wide = torch.promote_types(linear.weight.dtype, torch.float32)
    return cell[0].to(wide) @ linear.weight[:, -2:].T.to(wide) + linear.bias.to(wide)
