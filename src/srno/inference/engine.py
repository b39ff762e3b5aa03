"""The operator over a whole picture in constant memory: passes that sum up the integrals, and one that gives RGB.

A pass walks over the output in chunks. All that a chunk leaves behind are sums of heads·width² numbers, so each
integral is that of the whole picture, whatever the chunks are.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from srno.inference.latent import Chunk, Latent
from srno.inference.plan import Plan
from srno.operator import fused
from srno.operator.fused import Moments
from srno.operator.galerkin import EPSILON, GalerkinLayer
from srno.operator.projection import Projection

Advance: TypeAlias = Callable[[int], None]
"""Called with the number of points that one pass has just finished; may raise to cancel the work."""
Points: TypeAlias = tuple[Chunk, Tensor]


class Workspace:
    """Memory for one chunk's products, used again for the next: asking for it anew costs more than the arithmetic."""

    def __init__(self, like: Tensor) -> None:
        self.like = like
        self.buffer = like.new_empty(0)

    def product(self, bias: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        """bias + z @ weight, until the next product."""
        values = z.shape[0] * weight.shape[1]
        if self.buffer.numel() < values:
            self.buffer = self.like.new_empty(values)
        return torch.addmm(bias, z, weight, out=self.buffer[:values].reshape(z.shape[0], -1))


@dataclass(frozen=True)
class LayerMap:
    """A Galerkin layer whose integral is known: z ← z + W₂·gelu(A·z + a). Matrices are transposed, for z @ A."""

    A: Tensor
    a: Tensor
    W2: Tensor
    b2: Tensor

    def __call__(self, z: Tensor) -> Tensor:
        """(n, d_z) → the same; differentiable."""
        return z + torch.addmm(self.b2, F.gelu(torch.addmm(self.a, z, self.A)), self.W2)

    def update(self, z: Tensor, workspace: Workspace) -> None:
        """The same, in place."""
        hidden = gelu_(workspace.product(self.a, z, self.A))
        z.add_(self.b2).addmm_(hidden, self.W2)


Integrals: TypeAlias = tuple[LayerMap, ...]
"""The T layers of a model with the integrals of one picture at one sampling."""


def gelu_(a: Tensor) -> Tensor:
    """In place; torch has this under its operators only."""
    return torch.ops.aten.gelu_(a)


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
    A, a = fused.first_map(layer, fused.integral(layer, sums, n))
    dtype = layer.W2.weight.dtype
    return LayerMap(A[0].T.to(dtype).contiguous(), a[0].to(dtype), layer.W2.weight.T.contiguous(), layer.W2.bias)


class Passes:
    """z at all points, layer after layer: computed anew from z_0 in each pass, or kept when there is room for it."""

    def __init__(self, start: Callable[[], Iterable[Points]], workspace: Workspace, *, keep: bool) -> None:
        self.start, self.workspace, self.keep = start, workspace, keep
        self.maps: list[LayerMap] = []
        self.kept: list[Points] = []
        self.applied = 0
        """Layers that the kept z has been through."""

    def __iter__(self) -> Iterator[Points]:
        """Every chunk with its z after all layers so far."""
        pending = self.maps[self.applied :]
        keep_now = self.keep and not self.kept and bool(pending)  # z_0 is cheaper to compute than to keep
        for chunk, z in self.kept or self.start():
            for layer in pending:
                layer.update(z, self.workspace)
            if keep_now:
                self.kept.append((chunk, z.clone()))
            yield chunk, z
        self.applied = len(self.maps) if self.kept else 0


def integrate(layers: Iterable[GalerkinLayer], passes: Passes, advance: Advance) -> None:
    """Find the layers' integrals one after the other and add the layers to the passes."""
    for layer in layers:
        key_value, sums, n = KeyValue(layer), None, 0
        for chunk, z in passes:
            moments = key_value.moments(z, passes.workspace)
            sums = moments if sums is None else sums + moments
            n += z.shape[0]
            advance(chunk.points)
        assert sums is not None
        passes.maps.append(layer_map(layer, sums, n))


def integrate_latent(layers: Iterable[GalerkinLayer], latent: Latent, plan: Plan, advance: Advance) -> Integrals:
    """The integrals over all points of `latent`."""
    passes = Passes(lambda: latent.chunks(plan), Workspace(latent.weight), keep=plan.keep)
    integrate(layers, passes, advance)
    return tuple(passes.maps)


def render(
    layers: list[GalerkinLayer],
    projection: Projection,
    latent: Latent,
    plan: Plan,
    known: Integrals | None,
    advance: Advance,
) -> Iterator[Points]:
    """Every chunk of `latent` with its RGB (points, 3), without the bilinear skip."""
    workspace = Workspace(latent.weight)
    passes = Passes(lambda: latent.chunks(plan), workspace, keep=plan.keep and known is None)
    if known is None:
        integrate(layers, passes, advance)
    else:
        passes.maps.extend(known)
    hidden_weight, rgb_weight = projection.hidden.weight.T.contiguous(), projection.rgb.weight.T.contiguous()
    for chunk, z in passes:
        hidden = gelu_(workspace.product(projection.hidden.bias, z, hidden_weight))
        yield chunk, torch.addmm(projection.rgb.bias, hidden, rgb_weight)
        advance(chunk.points)


def integrate_points(layers: Iterable[GalerkinLayer], z: Tensor, chunk: int) -> Integrals:
    """The integrals over some points with latent vectors z (n, d_z), which are overwritten."""
    parts: tuple[Tensor, ...] = z.split(chunk)
    pieces: list[Points] = [(Chunk(0, 1, 0, part.shape[0]), part) for part in parts]
    passes = Passes(lambda: pieces, Workspace(z), keep=True)
    passes.kept = pieces
    integrate(layers, passes, lambda _: None)
    return tuple(passes.maps)
