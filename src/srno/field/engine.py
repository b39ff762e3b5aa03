"""The operator over a whole picture in constant memory: passes that sum the integrals, and one that computes RGB.

A pass processes the output in chunks. A chunk contributes only sums of heads·width² numbers, so each integral is that
of the whole picture for any chunk size.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from srno.operator import fused
from srno.operator.fused import Moments
from srno.operator.galerkin import EPSILON, GalerkinLayer
from srno.operator.latent import Workspace, gelu_
from srno.operator.sampling import Chunk

Advance: TypeAlias = Callable[[int], None]
"""Called with the number of points that one pass has just finished; may raise to cancel the work."""
Points: TypeAlias = tuple[Chunk, Tensor]


@dataclass(frozen=True)
class LayerMap:
    """A Galerkin layer whose integral is known: z ← z + W₂·gelu(A·z + a). Matrices are transposed, for z @ A."""

    A: Tensor
    a: Tensor
    W2: Tensor
    b2: Tensor
    M: Tensor
    """(heads, width, width): the integral itself, which A and a contain."""

    def __call__(self, z: Tensor) -> Tensor:
        """(..., d_z) → the same; differentiable."""
        return z + (F.gelu(z @ self.A + self.a) @ self.W2 + self.b2)

    def update(self, z: Tensor, workspace: Workspace) -> None:
        """The same for z (n, d_z), in place."""
        hidden = gelu_(workspace.product(self.a, z, self.A))
        z.add_(self.b2).addmm_(hidden, self.W2)


Integrals: TypeAlias = tuple[LayerMap, ...]
"""The T layers of a model with the integrals of one picture at one sampling."""


class KeyValue:
    """The centred key and value map of a layer, ready for products."""

    def __init__(self, layer: GalerkinLayer) -> None:
        weight, self.bias = fused.centred_key_value(layer)
        self.weight = weight.T.contiguous()
        self.heads = layer.heads

    def moments(self, z: Tensor, workspace: Workspace) -> Moments:
        """z (n, d_z) → its contribution to the layer's integral, in fp32 or better."""
        split = workspace.product(self.bias, z, self.weight).reshape(z.shape[0], 2, self.heads, -1)
        wide = torch.promote_types(z.dtype, torch.float32)
        std = torch.linalg.vector_norm(split, dim=-1, keepdim=True, dtype=wide) / (split.shape[-1] - 1) ** 0.5
        return fused.sum_up(split.mul_((std + EPSILON).reciprocal_()).unsqueeze(0))


def layer_map(layer: GalerkinLayer, sums: Moments, n: int) -> LayerMap:
    """Fold a layer and its integral, given by the moments of n points, into two products."""
    M = fused.integral(layer, sums, n)
    A, a = fused.first_map(layer, M)
    dtype = layer.W2.weight.dtype
    W2 = layer.W2.weight.T.contiguous()
    return LayerMap(A[0].T.to(dtype).contiguous(), a[0].to(dtype), W2, layer.W2.bias, M[0])


class Passes:
    """z at all points, layer after layer: recomputed from z_0 in each pass, or kept if the memory suffices."""

    def __init__(self, start: Callable[[], Iterable[Points]], like: Tensor, *, keep: bool) -> None:
        self.start, self.workspace, self.keep = start, Workspace(like), keep
        self.layers: list[LayerMap] = []
        self.kept: list[Points] = []
        self.applied = 0
        """Layers that have been applied to the kept z."""

    def __iter__(self) -> Iterator[Points]:
        """Yield every chunk with its z after all layers so far."""
        pending = self.layers[self.applied :]
        keep_now = self.keep and not self.kept and bool(pending)  # z_0 is cheaper to compute than to keep
        for chunk, z in self.kept or self.start():
            for layer in pending:
                layer.update(z, self.workspace)
            if keep_now:
                self.kept.append((chunk, z.clone()))
            yield chunk, z
        self.applied = len(self.layers) if self.kept else 0


def sum_moments(layer: GalerkinLayer, passes: Passes, advance: Advance) -> tuple[Moments, int]:
    """Sum a layer's moments over the points of one pass, in float64: their number has no limit. Return both."""
    key_value, sums, n = KeyValue(layer), None, 0
    for chunk, z in passes:
        moments = key_value.moments(z, passes.workspace).double()
        sums = moments if sums is None else sums + moments
        n += z.shape[0]
        advance(chunk.points)
    assert sums is not None
    return sums, n


def integrate(layers: Iterable[GalerkinLayer], passes: Passes, advance: Advance) -> Integrals:
    """Compute the integrals layer by layer and add the layers to the passes."""
    for layer in layers:
        passes.layers.append(layer_map(layer, *sum_moments(layer, passes, advance)))
    return tuple(passes.layers)


def integrate_points(layers: Iterable[GalerkinLayer], z: Tensor, chunk: int) -> Integrals:
    """Compute the integrals over points with latent vectors z (n, d_z), which are overwritten."""
    parts: tuple[Tensor, ...] = z.split(chunk)
    pieces: list[Points] = [(Chunk(0, 1, 0, part.shape[0]), part) for part in parts]
    passes = Passes(lambda: pieces, z, keep=True)
    passes.kept = pieces
    return integrate(layers, passes, lambda _: None)
