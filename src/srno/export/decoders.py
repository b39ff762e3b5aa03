"""Everything after the encoder: layers, projection and skip, and the decoders of the rivals."""

from typing import TypeAlias

from srno.export import rivals
from srno.export.axes import Axis
from srno.export.graph import Graph
from srno.export.kernels import Kernels
from srno.export.layers import bilinear, gelu, linear, to_picture
from srno.export.value import Value
from srno.operator.model import Model
from srno.operator.srno import SRNO
from srno.rivals.fixed import FixedScale
from srno.rivals.liif import LIIF
from srno.rivals.lte import LTE
from srno.rivals.metasr import MetaSR
from srno.rivals.mlp import MLP

Maps: TypeAlias = list[tuple[Value, Value]]
"""A and a of each layer for one picture at one size."""


def integrate(kernels: Kernels, z: Value) -> Maps:
    """Return the layers' matrices with integrals over exactly the points of z (n, d_z)."""
    maps: Maps = []
    for t in range(len(kernels)):
        z_t, layer = apply_layers(kernels, maps, z), kernels.layer(t)  # equal nodes are shared, so nothing is repeated
        with kernels.graph.scope(f"layers.{t}"):
            maps.append(kernels.fold(layer, kernels.sums(layer, z_t)))
    return maps


def apply_layers(kernels: Kernels, maps: Maps, z: Value) -> Value:
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
