"""Everything after the encoder: layers, projection and skip, and the decoders of the rivals.

Galerkin layers follow the algebra of `operator.fused`: sums over points, then two products per point. With k⁺ = [k̂, 1]
and v⁺ = [v̂, 1], all that an integral needs is S = Σ k⁺ᵀv⁺ (heads, width + 1, width + 1): k̂ᵀv̂, the sums of both, and in
the corner the number of points n. The norms' γ and β, W_q and W₁ are linear around it, so

    A = W₁ + left · (S · right) / n        z ← z + W₂·gelu(A·z)

with z extended by a one for the biases. `left` and `right` do not depend on the picture.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from srno.export import rivals
from srno.export.axes import Axis
from srno.export.graph import Graph
from srno.export.layers import bilinear, gelu, linear, to_picture
from srno.export.value import Value
from srno.operator.fused import centred_key_value
from srno.operator.galerkin import EPSILON, GalerkinLayer, HeadNorm
from srno.operator.model import Model
from srno.operator.srno import SRNO
from srno.rivals.fixed import FixedScale
from srno.rivals.liif import LIIF
from srno.rivals.lte import LTE
from srno.rivals.metasr import MetaSR
from srno.rivals.mlp import MLP

GraphMaps: TypeAlias = list[tuple[Value, Value]]
"""A and a of each layer for one picture at one size."""

Role: TypeAlias = Literal["key", "key_bias", "value", "value_bias", "left", "right", "first", "W2", "b2"]
LayerTensors: TypeAlias = Callable[[Role], Value]
"""The weights of one layer in a graph, by role."""

PER_PICTURE = ("left", "right", "first")
"""Roles that are used once per picture, not once per point: always in float32."""


def layer_weights(layer: GalerkinLayer) -> dict[Role, Tensor]:
    """Combine the weights of a layer, in float64 where they are multiplied."""
    weight, bias = centred_key_value(layer)
    (key, value), (key_bias, value_bias) = weight.chunk(2), bias.unsqueeze(1).chunk(2)
    query, first = (_with_bias(each.weight, each.bias) for each in (layer.query, layer.W1))
    by_head = query.reshape(layer.heads, -1, query.shape[1]).transpose(1, 2)  # (heads, d_z + 1, width)
    columns = layer.W1.weight.double().T.reshape(layer.heads, -1, first.shape[0])  # (heads, width, d_z)
    return {
        "key": key,
        "key_bias": key_bias,
        "value": value,
        "value_bias": value_bias,
        "left": (by_head @ _affine(layer.key_norm)).permute(1, 0, 2).flatten(1),  # (d_z + 1, heads·(width + 1))
        "right": _affine(layer.value_norm).transpose(1, 2) @ columns,  # (heads, width + 1, d_z)
        "first": first.T,
        "W2": layer.W2.weight.T,
        "b2": layer.W2.bias,
    }


def _with_bias(weight: Tensor, bias: Tensor) -> Tensor:
    return torch.cat([weight, bias.unsqueeze(1)], dim=1).double()


def _affine(norm: HeadNorm) -> Tensor:
    """(heads, width, width + 1): γ on the diagonal and β beside it."""
    return torch.cat([torch.diag_embed(norm.weight), norm.bias.unsqueeze(2)], dim=2).double()


class Kernels:
    """The T layers of a model, with their weights in a graph."""

    def __init__(self, graph: Graph, layers: Sequence[GalerkinLayer]) -> None:
        self.graph, self.heads, self.d_z = graph, layers[0].heads, layers[0].W2.in_features
        self.width = self.d_z // self.heads
        self._weights = [layer_weights(layer) for layer in layers]

    def __len__(self) -> int:
        return len(self._weights)

    def layer(self, number: int) -> LayerTensors:
        """Return the weights of one layer."""
        return lambda role: self._place(f"layers.{number}.{role}", role, self._weights[number][role])

    def layer_at(self, number: Value) -> LayerTensors:
        """Return the weights of a layer whose number () is known only at run time."""

        def pick(role: Role) -> Value:
            stack = torch.stack([weights[role] for weights in self._weights])
            return self._place(f"layers.{role}", role, stack).gather(number)

        return pick

    def _place(self, name: str, role: Role, tensor: Tensor) -> Value:
        return self.graph.weight(name, tensor, "float32" if role in PER_PICTURE else None)

    def sums(self, layer: LayerTensors, z: Value) -> Value:
        """z (n, d_z) → S (heads, width + 1, width + 1), float32."""
        graph = self.graph
        k, v = self._unit(layer("key"), layer("key_bias"), z), self._unit(layer("value"), layer("value_bias"), z)
        ones = graph.weight("ones", torch.ones(self.heads, 1, 1), "float32")
        above = graph.concat([k @ v.transpose(0, 2, 1), k.sum(2)], 2)
        below = graph.concat([v.sum(2).transpose(0, 2, 1), ones * z.length(0).cast("float32")], 2)
        return graph.concat([above, below], 1)

    def _unit(self, weight: Value, bias: Value, z: Value) -> Value:
        """k̂ or v̂ (heads, width, n): unit variance within each head, float32."""
        centred = self.graph.affine(weight, z, bias, transposed=True).cast("float32")
        split = centred.reshape([self.heads, self.width, -1], (self.heads, self.width, z.shape[0]))
        variance = (split * split).sum(1) / float(self.width - 1)
        return split / (variance.apply("Sqrt") + EPSILON)

    def fold(self, layer: LayerTensors, sums: Value) -> tuple[Value, Value]:
        """Fold a layer and its sums into A (d_z, d_z) and a (d_z,), float32."""
        count = sums.gather(0).gather(self.width).gather(self.width)
        through = (sums @ layer("right")).reshape([-1, self.d_z], (self.heads * (self.width + 1), self.d_z))
        both = layer("left") @ through / count + layer("first")
        return both.slice(0, 0, self.d_z, self.d_z), both.gather(self.d_z)

    def apply(self, layer: LayerTensors, A: Value, a: Value, z: Value) -> Value:
        """z (n, d_z) ← z + W₂·gelu(A·z + a)."""
        precision = self.graph.precision
        hidden = gelu(self.graph.affine(z, A.cast(precision), a.cast(precision)))
        return z + self.graph.affine(hidden, layer("W2"), layer("b2"))


def integrate(kernels: Kernels, z: Value) -> GraphMaps:
    """Return the layers' matrices with integrals over exactly the points of z (n, d_z)."""
    maps: GraphMaps = []
    for t in range(len(kernels)):
        z_t, layer = apply_layers(kernels, maps, z), kernels.layer(t)  # equal nodes are shared, so nothing is repeated
        with kernels.graph.scope(f"layers.{t}"):
            maps.append(kernels.fold(layer, kernels.sums(layer, z_t)))
    return maps


def apply_layers(kernels: Kernels, maps: GraphMaps, z: Value) -> Value:
    """Apply the first layers to z (n, d_z), those whose matrices are known."""
    for t, (A, a) in enumerate(maps):
        with kernels.graph.scope(f"layers.{t}"):
            z = kernels.apply(kernels.layer(t), A, a, z)
    return z


def project(graph: Graph, model: SRNO, z: Value, y: Axis, x: Axis) -> Value:
    """z (rows·columns, d_z) → RGB in [-1, 1] without the skip, (1, 3, rows, columns)."""
    with graph.scope("projection"):
        hidden = gelu(linear(graph, "projection.hidden", model.projection.hidden, z))
        return to_picture(graph, "projection.rgb", model.projection.rgb, hidden, y, x)


def decode_rival(graph: Graph, model: Model, features: Value, y: Axis, x: Axis) -> Value:
    """features (1, C, h, w) → RGB in [-1, 1] without the skip, (1, 3, rows, columns)."""
    with graph.scope("decoder"):
        match model:
            case LIIF():
                return rivals.liif(graph, model, features, y, x)
            case LTE():
                return rivals.lte(graph, model, features, y, x)
            case MetaSR():
                return rivals.metasr(graph, model, features, y, x)
            case MLP():
                return rivals.mlp(graph, model, features, y, x)
            case FixedScale():
                return rivals.fixed(graph, model, features, y, x)
            case _:
                raise NotImplementedError(f"no graph for {type(model).__name__}")


def has_skip(model: Model) -> bool:
    """Whether the system adds the bilinear picture."""
    return isinstance(model, SRNO | LTE | MLP)


def with_skip(rgb: Value, image: Value, y: Axis, x: Axis) -> Value:
    """Add the bilinear values of image (1, 3, h, w) in [0, 1] to RGB in [-1, 1]."""
    return rgb + bilinear(image * 2.0 - 1.0, y.between(), x.between())


def unit_range(rgb: Value) -> Value:
    """RGB in [-1, 1] → [0, 1], clipped."""
    return (rgb * 0.5 + 0.5).clip(0.0, 1.0)
