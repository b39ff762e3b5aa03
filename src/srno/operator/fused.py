"""The operator's algebra, rearranged: the same function with fewer products, for training and for inference.

With the integral M known, everything before the first gelu of a Galerkin layer is linear in z, so q is not computed;
the mean in the head norm is linear too and is folded into the weights; and its γ and β act on M, not on every point.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from srno.operator.galerkin import EPSILON, GalerkinLayer, HeadNorm


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

    def double(self) -> "Moments":
        """The same sums in float64."""
        return Moments(self.kv.double(), self.k.double(), self.v.double())


def centred_key_value(layer: GalerkinLayer) -> tuple[Tensor, Tensor]:
    """Weight (2·d_z, d_z) and bias (2·d_z) of k and v with each head's mean subtracted."""
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
    """M (B, heads, width, width), with the head norms' γ and β applied."""
    outer = _affine(layer.key_norm, sums.k / n).unsqueeze(-1) * layer.value_norm.bias.unsqueeze(-2)
    inner = layer.key_norm.bias.unsqueeze(-1) * (layer.value_norm.weight * sums.v / n).unsqueeze(-2)
    scaled = layer.key_norm.weight.unsqueeze(-1) * (sums.kv / n) * layer.value_norm.weight.unsqueeze(-2)
    return scaled + outer + inner


def _affine(norm: HeadNorm, a: Tensor) -> Tensor:
    return norm.weight * a + norm.bias


def first_map(layer: GalerkinLayer, M: Tensor) -> tuple[Tensor, Tensor]:
    """W₁·(q·M + z) as one affine map of z: weights (B, d_z, d_z) and biases (B, d_z)."""
    query = layer.query.weight.to(M.dtype).reshape(layer.heads, -1, layer.query.in_features)
    query_map = torch.einsum("bhij,hid->bhjd", M, query).flatten(1, 2)
    shift = torch.einsum("bhij,hi->bhj", M, layer.query.bias.to(M.dtype).reshape(layer.heads, -1)).flatten(1)
    W1 = layer.W1.weight.to(M.dtype)
    return W1 + W1 @ query_map, layer.W1.bias + shift @ W1.T


def galerkin(layer: GalerkinLayer, z: Tensor) -> Tensor:
    """The same as layer(z), for z (B, n, d_z)."""
    sums = moments(layer, z)
    with torch.autocast(z.device.type, enabled=False):
        A, a = first_map(layer, integral(layer, sums, z.shape[1]))
    hidden = torch.baddbmm(a.to(z.dtype).unsqueeze(1), z, A.to(z.dtype).transpose(1, 2))
    return z + layer.W2(F.gelu(hidden))


class UnitMoments(torch.autograd.Function):
    """z (B, n, d_z) to Σ k̂ᵀv̂ (B, heads, width, width), Σ k̂ and Σ v̂ (B, heads, width), in fp32 or better.

    The weight (2·d_z, d_z) and bias (2·d_z) are those of k and v, without the mean of each head; k̂ and v̂ have
    unit variance within it. Only their sums are returned.

    The gradient is written by hand: autograd takes a dozen passes over arrays twice the size of z, most of them for
    the norm; this version, with the points innermost, takes five.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, weight: Tensor, bias: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
        batch, n, d_z = z.shape
        wide = torch.promote_types(z.dtype, torch.float32)
        kv = z.new_empty(2, batch, d_z, n)
        for part, W, b in zip(kv, weight.chunk(2), bias.chunk(2), strict=True):
            torch.baddbmm(b.unsqueeze(1), W.expand(batch, -1, -1), z.transpose(1, 2), out=part)
        unit = kv.view(2, batch * heads, -1, n)
        std = (unit.square().sum(2, keepdim=True, dtype=wide) / (unit.shape[2] - 1)).sqrt_()
        unit.mul_((std + EPSILON).reciprocal_().to(unit.dtype))
        ctx.save_for_backward(z, weight, unit, std)
        product = torch.bmm(unit[0], unit[1].transpose(1, 2)).to(wide)
        sums = unit.sum(3, dtype=wide).unflatten(1, (batch, heads))
        return product.unflatten(0, (batch, heads)), sums[0], sums[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        z, weight, unit, std = ctx.saved_tensors
        batch, n, d_z = z.shape
        g_kv, g_k, g_v = (gradient.flatten(0, 1).to(z.dtype) for gradient in gradients)
        g = torch.empty_like(unit)  # first with respect to k̂ and v̂, then in place to k and v
        torch.baddbmm(g_k.unsqueeze(2), g_kv, unit[1], out=g[0])
        torch.baddbmm(g_v.unsqueeze(2), g_kv.transpose(1, 2), unit[0], out=g[1])
        radial = (g * unit).sum(2, keepdim=True, dtype=std.dtype)
        radial *= (std + EPSILON) / (std.clamp(min=1e-30) * (unit.shape[2] - 1))  # where std is 0, so is the sum
        g.addcmul_(unit, radial.to(g.dtype), value=-1).mul_((std + EPSILON).reciprocal_().to(g.dtype))
        k, v = g.view(2, batch, d_z, n)
        W_k, W_v = (W.expand(batch, -1, -1) for W in weight.chunk(2))
        g_z = torch.bmm(k.transpose(1, 2), W_k).baddbmm_(v.transpose(1, 2), W_v)
        g_weight = torch.cat([torch.bmm(part, z).sum(0) for part in (k, v)])
        return g_z, g_weight, g.view(2, batch, d_z, n).sum((1, 3)).flatten(), None
