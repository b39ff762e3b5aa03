"""From a model to its graphs: a single one, or encoder, integral and render for programs that work in tiles."""

import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from srno.checkpoints.native import Card
from srno.config import config_to_dict
from srno.errors import SRNOError
from srno.export.axes import Axis, point_axes, tile_axes, whole_axes
from srno.export.decoders import (
    Kernels,
    apply_layers,
    decode_rival,
    has_skip,
    integrate,
    project,
    unit_range,
    with_skip,
)
from srno.export.graph import Graph
from srno.export.layers import encode
from srno.export.liftings import GraphLifting
from srno.export.value import DType, Value
from srno.files import replacing
from srno.operator.encoder import channels, radius
from srno.operator.model import Model
from srno.operator.srno import SRNO

if TYPE_CHECKING:
    import onnx

GraphPrecision: TypeAlias = Literal["fp32", "fp16"]

DTYPES: dict[GraphPrecision, DType] = {"fp32": "float32", "fp16": "float16"}

IMAGE = "the picture, RGB in [0, 1]"
SIZE = "height and width of the whole output"
TILE = "top, left, bottom and right of the tile, in output pixels"
FEATURES = "features of the whole picture, from the encoder"
ENLARGED = "RGB in [0, 1]"
MAPS = "the layers as matrices for this picture and size"
SUMS = "sums over the output pixels so far"


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """A model and the options of its export."""

    model: Model
    card: Card
    points: int | Literal["auto"] | None = None
    """Output pixels that the kernel integral is estimated from, `auto` as in the engine; None for all of them."""
    precision: GraphPrecision = "fp32"
    """Precision of the products; pictures, positions and sums over pixels are never below fp32."""

    def __post_init__(self) -> None:
        if isinstance(self.points, int) and self.points < 1:
            raise SRNOError(f"integral {self.points}: choose at least 1 point, or exact")
        if self.precision not in DTYPES:
            raise SRNOError(f"precision {self.precision!r}: choose {', '.join(DTYPES)}")

    def whole(self) -> "onnx.ModelProto":
        """Build one graph: image (1, 3, h, w) and size (2,) → (1, 3, H, W)."""
        graph = Graph(DTYPES[self.precision])
        image = graph.input("image", "float32", (1, 3, "h", "w"), IMAGE)
        size = graph.input("size", "int64", (2,), SIZE)
        features = encode(graph, self.model.encoder, image)
        y, x = whole_axes(graph, features, size)
        rgb = self._decode(graph, features, size, y, x)
        if has_skip(self.model):
            rgb = with_skip(rgb, image, y, x)
        graph.output("enlarged", unit_range(rgb), ENLARGED)
        return self._finish(graph, "whole")

    def part_names(self) -> tuple[str, ...]:
        """Names of the parts; a model without kernel layers has no integral."""
        return ("encoder", "integral", "render") if self.model.kernel_layers() else ("encoder", "render")

    def parts(self) -> "dict[str, onnx.ModelProto]":
        """Build one graph for each part."""
        build = {"encoder": self._encoder, "integral": self._integral, "render": self._render}
        return {part: build[part]() for part in self.part_names()}

    def _decode(self, graph: Graph, features: Value, size: Value, y: Axis, x: Axis) -> Value:
        """RGB in [-1, 1] of the whole output, without the skip."""
        if not isinstance(self.model, SRNO):
            return decode_rival(graph, self.model, features, y, x)
        lifting, kernels = GraphLifting(graph, self.model.lifting), Kernels(graph, self.model.kernel_layers())
        z = lifting.on_grid(features, y, x)
        if self.points is None:
            maps = integrate(kernels, z)
        else:
            with graph.scope("integral"):
                points = lifting.at_points(features, *point_axes(graph, features, size, self.points))
                maps = integrate(kernels, points)
        z = apply_layers(kernels, maps, z)
        return project(graph, self.model, z, y, x)

    def _encoder(self) -> "onnx.ModelProto":
        graph = Graph(DTYPES[self.precision])
        image = graph.input("image", "float32", (1, 3, "h", "w"), IMAGE)
        graph.output("features", encode(graph, self.model.encoder, image), FEATURES)
        return self._finish(graph, "encoder")

    def _integral(self) -> "onnx.ModelProto":
        graph, features, size = self._over_features()
        assert isinstance(self.model, SRNO)
        lifting, kernels = GraphLifting(graph, self.model.lifting), Kernels(graph, self.model.kernel_layers())
        if self.points is None:
            _integrate_tile(graph, lifting, kernels, features, size)
        else:
            maps = integrate(kernels, lifting.at_points(features, *point_axes(graph, features, size, self.points)))
            for name, matrices in zip("Aa", zip(*maps, strict=True), strict=True):
                graph.output(name, graph.concat([each.expand_dims(0) for each in matrices], 0), MAPS)
        return self._finish(graph, "integral")

    def _render(self) -> "onnx.ModelProto":
        graph, features, size = self._over_features()
        tile = graph.input("tile", "int64", (4,), TILE)
        y, x, window = tile_axes(graph, features, size, tile)
        if isinstance(self.model, SRNO):
            kernels = Kernels(graph, self.model.kernel_layers())
            T, d_z = len(kernels), kernels.d_z
            A = graph.input("A", "float32", (T, d_z, d_z), MAPS)
            a = graph.input("a", "float32", (T, d_z), MAPS)
            z = GraphLifting(graph, self.model.lifting).on_grid(window, y, x)
            z = apply_layers(kernels, [(A.gather(t), a.gather(t)) for t in range(T)], z)
            rgb = project(graph, self.model, z, y, x)
        else:
            rgb = decode_rival(graph, self.model, window, y, x)
        if has_skip(self.model):
            image = graph.input("image", "float32", (1, 3, "h", "w"), IMAGE)
            rgb = with_skip(rgb, image, y, x)
        graph.output("enlarged", unit_range(rgb), ENLARGED)
        return self._finish(graph, "render")

    def _over_features(self) -> tuple[Graph, Value, Value]:
        """A graph with the inputs features and size."""
        graph = Graph(DTYPES[self.precision])
        shape = (1, channels(self.model.encoder), "h", "w")
        features = graph.input("features", graph.precision, shape, FEATURES)
        return graph, features, graph.input("size", "int64", (2,), SIZE)

    def _finish(self, graph: Graph, part: str) -> "onnx.ModelProto":
        metadata = {
            "config": json.dumps(config_to_dict(self.model.config), sort_keys=True),
            "card": json.dumps(asdict(self.card), sort_keys=True),
            "licence": self.card.licence,
            "part": part,
            "integral": "exact" if self.points is None else str(self.points),
            "precision": self.precision,
            "radius": str(radius(self.model.encoder)),
        }
        return graph.finish(f"{self.model.config.system}-{part}", f"{self.card.name}, {part}", metadata)


def _integrate_tile(graph: Graph, lifting: GraphLifting, kernels: Kernels, features: Value, size: Value) -> None:
    """Add a tile to the sums of layer t, where A and a hold the t layers before it.

    The new matrix is that of the sums so far: after the last tile, it is that of the layer.
    """
    d_z, sides = kernels.d_z, (kernels.heads, kernels.width + 1, kernels.width + 1)
    tile = graph.input("tile", "int64", (4,), TILE)
    sums = graph.input("sums", "float32", sides, SUMS)
    y, x, window = tile_axes(graph, features, size, tile)
    z, layer = lifting.on_grid(window, y, x), kernels.layer(0)
    if len(kernels) > 1:
        A = graph.input("A", "float32", ("t", d_z, d_z), MAPS)
        a = graph.input("a", "float32", ("t", d_z), MAPS)
        t = A.length(0).squeeze()
        for i in range(len(kernels) - 1):
            apply = partial(kernels.apply, kernels.layer(i))
            z = graph.when(t > i, z, lambda z, i=i, apply=apply: apply(A.gather(i), a.gather(i), z))
        layer = kernels.layer_at(t)
    total = sums + kernels.sums(layer, z)
    new_A, new_a = kernels.fold(layer, total)
    graph.output("new_sums", total, SUMS)
    graph.output("new_A", new_A, "matrix of layer t, from the sums so far")
    graph.output("new_a", new_a, "bias of layer t, from the sums so far")


if TYPE_CHECKING:
    import onnx


def save_onnx(
    model: Model,
    path: str | Path,
    *,
    card: Card | None = None,
    parts: bool = False,
    points: int | Literal["auto"] | None = None,
    precision: GraphPrecision = "fp32",
    overwrite: bool = False,
) -> list[Path]:
    """Write a model as one ONNX graph, or as several with `parts`, and return the paths.

    `points` is the number of output pixels that the kernel integral is estimated from, `auto` as in the engine; None
    for all of them. The graphs hold the card in their metadata.

    >>> import srno, tempfile, pathlib
    >>> from srno.export.export import save_onnx
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "light.onnx"
    >>> [path.name for path in save_onnx(srno.load("default"), path, parts=True)]
    ['light.encoder.onnx', 'light.integral.onnx', 'light.render.onnx']
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise SRNOError(f"{path}: the target must end in .onnx")
    exporter = Exporter(model=model, card=card or Card(name=path.stem), points=points, precision=precision)
    names = exporter.part_names() if parts else ()
    targets = [path.with_suffix(f".{name}.onnx") for name in names] or [path]
    for target in targets:
        if target.exists() and not overwrite:
            raise SRNOError(f"{target} exists; use --overwrite to replace it")
    graphs = list(exporter.parts().values()) if parts else [exporter.whole()]
    _write(dict(zip(targets, graphs, strict=True)))
    return targets


def _write(graphs: "dict[Path, onnx.ModelProto]") -> None:
    """Write all graphs to temporary files before any of them is renamed to its path."""
    try:
        with ExitStack() as stack:
            for path, graph in graphs.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(replacing(path, sync=True)).write(graph.SerializeToString(deterministic=True))
    except OSError as error:
        names = ", ".join(str(path) for path in graphs)
        raise SRNOError(f"{names}: cannot be written ({error.strerror})") from None
