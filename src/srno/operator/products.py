"""Affine maps of many points: product, bias and what follows them in one call of oneDNN, where there is one.

torch.addmm and F.linear take MKL in fp32. On AMD's CPUs with AVX-512 that is half as fast as oneDNN, and everywhere it
leaves gelu and the residual sum to passes of their own. oneDNN has no gradient here, so it is used without one only.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def affine(z: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """z (n, in), weight (out, in), bias (out,) → z·weightᵀ + bias (n, out)."""
    if _is_fusible(z):
        return torch.ops.mkldnn._linear_pointwise(z, weight, bias, "none", [], "")
    return F.linear(z, weight, bias)


def affine_gelu(z: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The same, with gelu applied to the result."""
    if _is_fusible(z):
        return torch.ops.mkldnn._linear_pointwise(z, weight, bias, "gelu", [], "none")
    return F.gelu(F.linear(z, weight, bias))


def add_affine(z: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """z (n, out) and hidden (n, in) → z + hidden·weightᵀ + bias (n, out)."""
    if _is_fusible(hidden):
        return torch.ops.mkldnn._linear_pointwise.binary(hidden, z, weight, bias, "add")
    return z + F.linear(hidden, weight, bias)


def _is_fusible(a: Tensor) -> bool:
    """Whether oneDNN can compute with an array: on a CPU, without gradients, in a precision that the CPU has."""
    if torch.is_grad_enabled() or a.device.type != "cpu" or a.numel() == 0 or not torch.backends.mkldnn.enabled:
        return False
    if a.dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return a.dtype == torch.float32 and torch.backends.mkldnn.is_available()
