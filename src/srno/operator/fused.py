"""The operator's algebra, rearranged: the same function with fewer products, for training and for inference.

With the integral M known, everything before the first gelu of a Galerkin layer is linear in z, so q is never formed;
the mean in the head norm is linear too and goes into the weights; and its γ and β act on M, not on every point.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from srno.operator.galerkin import GalerkinLayer, HeadNorm
from srno.operator.grid import neighbours
from srno.operator.lifting import InterpolationFreeLifting
from srno.operator.projection import bilinear
from srno.operator.srno import SRNO
from srno.operator.unit_moments import UnitMoments


@dataclass(frozen=True)
class Moments:
    """Sums over points of the unit-variance k̂ and v̂: all that the integral needs, and additive over chunks."""

    kv: Tensor
    """(B, heads, width, width) Σ k̂ᵀv̂"""
    k: Tensor
    """(B, heads, width) Σ k̂"""
    v: Tensor
    """(B, heads, width) Σ v̂"""

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.kv + other.kv, self.k + other.k, self.v + other.v)


def centred_key_value(layer: GalerkinLayer) -> tuple[Tensor, Tensor]:
    """Weight (2·d_z, d_z) and bias (2·d_z) of k and v with each head's mean taken out."""
    weights = [_centre(linear.weight, layer.heads) for linear in (layer.key, layer.value)]
    biases = [_centre(linear.bias, layer.heads) for linear in (layer.key, layer.value)]
    return torch.cat(weights), torch.cat(biases)


def _centre(a: Tensor, heads: int) -> Tensor:
    """Rows (d_z, ...) minus the mean row of their head."""
    split = a.reshape(heads, -1, *a.shape[1:])
    return (split - split.mean(1, keepdim=True)).reshape(a.shape)


def moments(layer: GalerkinLayer, z: Tensor) -> Moments:
    """The moments over the n points of z (B, n, d_z), never below fp32."""
    with torch.autocast(z.device.type, enabled=False):  # small matrices: half precision would only cost accuracy
        weight, bias = centred_key_value(layer)
    sums: tuple[Tensor, Tensor, Tensor] = UnitMoments.apply(z, weight.to(z.dtype), bias.to(z.dtype), layer.heads)
    return Moments(*sums)


def sum_up(unit: Tensor) -> Moments:
    """Unit-variance k̂ and v̂ (B, n, 2, heads, width) → their moments, never below fp32."""
    wide = torch.promote_types(unit.dtype, torch.float32)
    k, v = unit[:, :, 0].transpose(1, 2), unit[:, :, 1].transpose(1, 2)
    return Moments(torch.matmul(k.transpose(-1, -2), v).to(wide), k.to(wide).sum(2), v.to(wide).sum(2))


def integral(layer: GalerkinLayer, sums: Moments, n: int) -> Tensor:
    """M (B, heads, width, width), with the head norms' γ and β put back."""
    outer = _affine(layer.key_norm, sums.k / n).unsqueeze(-1) * layer.value_norm.bias.unsqueeze(-2)
    inner = layer.key_norm.bias.unsqueeze(-1) * (layer.value_norm.weight * sums.v / n).unsqueeze(-2)
    scaled = layer.key_norm.weight.unsqueeze(-1) * (sums.kv / n) * layer.value_norm.weight.unsqueeze(-2)
    return scaled + outer + inner


def _affine(norm: HeadNorm, a: Tensor) -> Tensor:
    return norm.weight * a + norm.bias


def first_map(layer: GalerkinLayer, M: Tensor) -> tuple[Tensor, Tensor]:
    """W₁·(q·M + z) as one affine map of z: weights (B, d_z, d_z) and biases (B, d_z)."""
    query = layer.query.weight.to(M.dtype).reshape(layer.heads, -1, layer.query.in_features)
    through = torch.einsum("bhij,hid->bhjd", M, query).flatten(1, 2)
    shift = torch.einsum("bhij,hi->bhj", M, layer.query.bias.to(M.dtype).reshape(layer.heads, -1)).flatten(1)
    W1 = layer.W1.weight.to(M.dtype)
    return W1 + W1 @ through, layer.W1.bias + shift @ W1.T


def galerkin(layer: GalerkinLayer, z: Tensor) -> Tensor:
    """The same as layer(z), for z (B, n, d_z)."""
    sums = moments(layer, z)
    with torch.autocast(z.device.type, enabled=False):
        A, a = first_map(layer, integral(layer, sums, z.shape[1]))
    hidden = torch.baddbmm(a.to(z.dtype).unsqueeze(1), z, A.to(z.dtype).transpose(1, 2))
    return z + layer.W2(F.gelu(hidden))


def lift(lifting: InterpolationFreeLifting, features: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
    """The same as lifting(features, coords, cell), with one gather for all four neighbours."""
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
    weight = lifting.linear.weight
    W_features, W_local = weight[:, 8:-2], torch.cat([weight[:, :8], weight[:, -2:]], dim=1)
    z = F.linear(weighted.flatten(2), W_features, lifting.linear.bias)
    return z + F.linear(torch.cat(local, dim=-1).to(features.dtype), W_local)


def decode(model: SRNO, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
    """The same as model.decode(...): features (B, C, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3)."""
    lifting = model.lifting
    if isinstance(lifting, InterpolationFreeLifting):
        z = lift(lifting, features, coords, cell)
    else:
        z = lifting(features, coords, cell)
    for layer in model.galerkin_layers():
        z = galerkin(layer, z)
    return (model.projection(z) + bilinear(image, coords)).to(image.dtype)
