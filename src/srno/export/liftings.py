"""z_0 on a grid or at points, rearranged as in `operator.latent`, with integer gathers.

The lifting is linear, so on a grid the features are projected once per picture pixel; and Ω is a product, so terms that
depend only on the row or only on the column are computed once for each.
"""

from dataclasses import dataclass
from functools import reduce
from math import pi
from operator import add

import torch
from torch import Tensor

from srno.export.axes import Axis, cell_of
from srno.export.graph import Graph
from srno.export.layers import pixels_last
from srno.export.value import Value
from srno.operator.lifting import POSITION_OCTAVES, InterpolationFreeLifting, NearestLifting


@dataclass(frozen=True)
class Stencil:
    """One axis of a lifting at n output pixels."""

    index: list[Value]
    """(n,) picture pixels: both neighbours, or the nearest pixel"""
    share: list[Value] | None
    """(n, 1) their weights; None for a single pixel"""
    summand: Value
    """(n, d_z) the term that depends only on this axis"""

    def weighted(self, i: int, found: Value) -> Value:
        """Multiply (..., n, d) by the share of pixel i."""
        return found if self.share is None else found * self.share[i]

    def weighted_rows(self, i: int, found: Value) -> Value:
        """Multiply (n, w, d) by the share of pixel i."""
        return found if self.share is None else found * self.share[i].expand_dims(2)


class GraphLifting:
    """The lifting of a model, with its weights in a graph."""

    def __init__(self, graph: Graph, lifting: InterpolationFreeLifting | NearestLifting) -> None:
        weight, self.bias = lifting.linear.weight, lifting.linear.bias
        self.graph, self.d_z = graph, weight.shape[0]
        self.side = 2 if isinstance(lifting, InterpolationFreeLifting) else 1
        """Pixels of the stencil along each axis."""
        if self.side == 2:
            features, offsets = weight[:, 8:-2], weight[:, :8].reshape(-1, 2, 2, 2)
            self.local = offsets[..., 0].sum(2).T, offsets[..., 1].sum(1).T
        else:
            features, embedding = weight[:, : -4 * POSITION_OCTAVES - 2], weight[:, -4 * POSITION_OCTAVES - 2 : -2]
            self.local = embedding[:, 0::2].T, embedding[:, 1::2].T
        self.features = features.reshape(self.d_z, self.side, self.side, -1)
        """(d_z, rows, columns, C)"""
        self.cell = weight[:, -2:].T

    def on_grid(self, features: Value, y: Axis, x: Axis) -> Value:
        """features (1, C, h, w) → z_0 at every row and column, (rows·columns, d_z)."""
        with self.graph.scope("lifting"):
            down, across = self._stencils(y, x)
            pixels = pixels_last(features)
            projected = [self._projected(pixels, i) for i in range(self.side)]
            rows = [down.weighted_rows(i, part.gather(down.index[i])) for i, part in enumerate(projected)]
            # the columns' shares sum to one, so this summand is added exactly once to every pixel of the row
            row = reduce(add, rows) + down.summand.expand_dims(1)
            places = [index * self.side + j for j, index in enumerate(across.index)]
            columns = [across.weighted(j, row.gather(place, 1)) for j, place in enumerate(places)]
            z = reduce(add, columns) + across.summand
            return z.reshape([-1, self.d_z], (f"{y.dim}*{x.dim}", self.d_z))

    def _projected(self, pixels: Value, i: int) -> Value:
        """Project pixels (h, w, C) for row i of the stencil → (h, side·w, d_z), columns of the stencil innermost."""
        weight = self.features[:, i].permute(2, 1, 0).reshape(-1, self.side * self.d_z)
        products = pixels @ self.graph.weight(f"lifting.row.{i}", weight)
        height, width, _ = pixels.shape
        return products.reshape([0, -1, self.d_z], (height, f"{self.side}*{width}", self.d_z))

    def at_points(self, features: Value, y: Axis, x: Axis) -> Value:
        """features (1, C, h, w) → z_0 (n, d_z) at n pairs of a row and a column."""
        channels = self.features.shape[-1]
        with self.graph.scope("lifting"):
            down, across = self._stencils(y, x)
            pixels = pixels_last(features).reshape([-1, channels], ("h*w", channels))
            picked = [
                across.weighted(j, down.weighted(i, pixels.gather(row * x.lr + column)))
                for i, row in enumerate(down.index)
                for j, column in enumerate(across.index)
            ]
            weight = self.features.permute(1, 2, 3, 0).reshape(-1, self.d_z)
            beside = self.graph.concat(picked, 1)
            z = self.graph.affine(beside, self.graph.weight("lifting.points", weight), down.summand)
            return z + across.summand

    def _stencils(self, y: Axis, x: Axis) -> tuple[Stencil, Stencil]:
        graph = self.graph
        cell = cell_of(y, x).cast(graph.precision)
        constant = graph.affine(cell, graph.weight("lifting.cell", self.cell), graph.weight("lifting.bias", self.bias))
        local = [graph.weight(f"lifting.{name}", weight) for name, weight in zip("yx", self.local, strict=True)]
        return self._stencil(y, local[0], constant), self._stencil(x, local[1], None)

    def _stencil(self, axis: Axis, local: Value, constant: Value | None) -> Stencil:
        graph, share = self.graph, None
        if self.side == 2:
            near, shares = axis.neighbours()
            share = [each.cast(graph.precision).expand_dims(1) for each in shares]
            given = graph.concat([each.delta.expand_dims(1) for each in near], 1)
        else:
            near = (axis.nearest(),)
            given = self._embedding(near[0].delta)
        given = given.cast(graph.precision)
        summand = given @ local if constant is None else graph.affine(given, local, constant)
        return Stencil([each.index for each in near], share, summand)

    def _embedding(self, delta: Value) -> Value:
        """Offsets (n,) along one axis → (n, 2·POSITION_OCTAVES): all sines, then all cosines, octave by octave."""
        octaves: Tensor = pi * 2.0 ** torch.arange(POSITION_OCTAVES).reshape(1, -1)
        angle = delta.expand_dims(1) * self.graph.weight("lifting.octaves", octaves, "float32")
        return self.graph.concat([angle.apply("Sin"), angle.apply("Cos")], 1)
