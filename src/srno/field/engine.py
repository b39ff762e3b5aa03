"""The operator over a whole picture in constant memory: passes that sum the integrals, and one that computes RGB.

A pass processes the output in chunks. A chunk contributes only sums of heads·width² numbers, so each integral is that
of the whole picture for any chunk size.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from srno.operator import fused
from srno.operator.fused import Moments
from srno.operator.galerkin import EPSILON, GalerkinLayer
from srno.operator.products import add_affine, affine, affine_gelu
from srno.operator.sampling import Chunk

Advance: TypeAlias = Callable[[int], None]
"""Called with the number of points that one pass has just finished; may raise to cancel the work."""
Points: TypeAlias = tuple[Chunk, Tensor]


@dataclass(frozen=True)
class LayerMap:
    """A Galerkin layer whose integral is known: z ← z + W₂·gelu(A·z + a)."""

    A: Tensor
    a: Tensor
    W2: Tensor
    b2: Tensor
    M: Tensor
    """(heads, width, width): the integral itself, which A and a contain."""

    def __call__(self, z: Tensor) -> Tensor:
        """(..., d_z) → the same; differentiable."""
        return add_affine(z, affine_gelu(z, self.A, self.a), self.W2, self.b2)


Integrals: TypeAlias = tuple[LayerMap, ...]
"""The T layers of a model with the integrals of one picture at one sampling."""


class KeyValue:
    """The centred key and value map of a layer, ready for products."""

    def __init__(self, layer: GalerkinLayer) -> None:
        self.weight, self.bias = fused.centred_key_value(layer)
        self.heads = layer.heads

    def moments(self, z: Tensor) -> Moments:
        """z (n, d_z) → its contribution to the layer's integral, in fp32 or better."""
        split = affine(z, self.weight, self.bias).reshape(z.shape[0], 2, self.heads, -1)
        wide = torch.promote_types(z.dtype, torch.float32)
        std = torch.linalg.vector_norm(split, dim=-1, keepdim=True, dtype=wide) / (split.shape[-1] - 1) ** 0.5
        return fused.sum_up(split.mul_((std + EPSILON).reciprocal_()).unsqueeze(0))


def layer_map(layer: GalerkinLayer, sums: Moments, n: int) -> LayerMap:
    """Fold a layer and its integral, given by the moments of n points, into two products."""
    M = fused.integral(layer, sums, n)
    A, a = fused.first_map(layer, M)
    dtype = layer.W2.weight.dtype
    return LayerMap(A[0].to(dtype).contiguous(), a[0].to(dtype), layer.W2.weight, layer.W2.bias, M[0])


class Passes:
    """z at all points, layer after layer: recomputed from z_0 in each pass, or kept if the memory suffices."""

    def __init__(
        self, start: Callable[[], Iterable[Points]], *, keep: bool = False, layers: Iterable[LayerMap] = ()
    ) -> None:
        self.start, self.keep = start, keep
        self.layers = list(layers)
        self.kept: deque[Points] = deque()
        self.applied = 0
        """Layers that have been applied to the kept z."""

    def __iter__(self) -> Iterator[Points]:
        """Yield every chunk with its z after all layers so far."""
        pending = self.layers[self.applied :]
        if self.kept and not pending:
            yield from self.kept
            return
        given, self.kept = (_drain(self.kept) if self.kept else self.start()), deque()
        for chunk, z in given:
            for layer in pending:
                z = layer(z)
            if self.keep and pending:  # z_0 is cheaper to compute than to keep
                self.kept.append((chunk, z))
            yield chunk, z
        self.applied = len(self.layers) if self.kept else 0


def _drain(points: deque[Points]) -> Iterator[Points]:
    """Yield all, and release each as soon as the next one is asked for."""
    while points:
        yield points.popleft()


def sum_moments(layer: GalerkinLayer, passes: Passes, advance: Advance) -> tuple[Moments, int]:
    """Sum a layer's moments over the points of one pass, in float64: their number has no limit. Return both."""
    key_value, sums, n = KeyValue(layer), None, 0
    for chunk, z in passes:
        moments = key_value.moments(z).double()
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
    """Compute the integrals over points with latent vectors z (n, d_z)."""
    parts: tuple[Tensor, ...] = z.split(chunk)
    pieces: list[Points] = [(Chunk(0, 1, 0, part.shape[0]), part) for part in parts]
    passes = Passes(lambda: pieces, keep=True)
    return integrate(layers, passes, lambda _: None)
