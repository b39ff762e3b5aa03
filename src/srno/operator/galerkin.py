"""Galerkin attention: the kernel integral ∫ k̃(y) ṽ(y)ᵀ dy as a mean over points, at a cost linear in their number."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from srno.config import SRNOConfig

EPSILON = 1e-5


class HeadNorm(nn.Module):
    """Normalisation over the channels of each head, by the unbiased standard deviation."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(heads, width))
        self.bias = nn.Parameter(torch.zeros(heads, width))

    def forward(self, a: Tensor) -> Tensor:
        """(B, n, heads, width) → the same."""
        mean = a.mean(-1, keepdim=True)
        std = a.std(-1, keepdim=True)
        return (a - mean) / (std + EPSILON) * self.weight + self.bias


class GalerkinLayer(nn.Module):
    """z ← z + W₂·gelu(W₁·(q·M + z)), M the mean of k̃ᵀṽ over all points."""

    def __init__(self, config: SRNOConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.d_z, config.d_z)
        self.key = nn.Linear(config.d_z, config.d_z)
        self.value = nn.Linear(config.d_z, config.d_z)
        self.key_norm = HeadNorm(config.heads, config.head_width)
        self.value_norm = HeadNorm(config.heads, config.head_width)
        self.W1 = nn.Linear(config.d_z, config.d_z)
        self.W2 = nn.Linear(config.d_z, config.d_z)

    def integral(self, z: Tensor) -> Tensor:
        """z (B, n, d_z) → M (B, heads, width, width). A sum over many points: never below fp32."""
        k = self.key_norm(self._split(self.key(z)))
        v = self.value_norm(self._split(self.value(z)))
        k, v = (a.to(torch.promote_types(a.dtype, torch.float32)).transpose(1, 2) for a in (k, v))
        return torch.matmul(k.transpose(-1, -2), v) / z.shape[1]

    def forward(self, z: Tensor) -> Tensor:
        """z (B, n, d_z) → the same."""
        M = self.integral(z).to(z.dtype)
        q = self._split(self.query(z)).transpose(1, 2)
        u = torch.matmul(q, M).transpose(1, 2).flatten(2)
        return z + self.W2(F.gelu(self.W1(u + z)))

    def _split(self, a: Tensor) -> Tensor:
        """(B, n, d_z) → (B, n, heads, width)."""
        return a.reshape(*a.shape[:-1], self.heads, -1)
