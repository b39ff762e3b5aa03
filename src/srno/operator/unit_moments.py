"""Moments of keys and values over points, with their gradient written out.

Left to autograd this is the costliest part of a Galerkin layer that is not a product: a dozen passes over arrays twice
the size of z, most of them for the gradient of the norm. By hand and with the points innermost there are five.
"""

from typing import Any

import torch
from torch import Tensor

from srno.operator.galerkin import EPSILON


class UnitMoments(torch.autograd.Function):
    """z (B, n, d_z) to Σ k̂ᵀv̂ (B, heads, width, width), Σ k̂ and Σ v̂ (B, heads, width), in fp32 or better.

    The weight (2·d_z, d_z) and bias (2·d_z) are those of k and v, without the mean of each head; k̂ and v̂ have
    unit variance within it. Only their sums leave this function.
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
        along = (g * unit).sum(2, keepdim=True, dtype=std.dtype)
        along *= (std + EPSILON) / (std.clamp(min=1e-30) * (unit.shape[2] - 1))  # where std is 0, so is the sum
        g.addcmul_(unit, along.to(g.dtype), value=-1).mul_((std + EPSILON).reciprocal_().to(g.dtype))
        k, v = g.view(2, batch, d_z, n)
        W_k, W_v = (W.expand(batch, -1, -1) for W in weight.chunk(2))
        g_z = torch.bmm(k.transpose(1, 2), W_k).baddbmm_(v.transpose(1, 2), W_v)
        g_weight = torch.cat([torch.bmm(part, z).sum(0) for part in (k, v)])
        return g_z, g_weight, g.view(2, batch, d_z, n).sum((1, 3)).flatten(), None
