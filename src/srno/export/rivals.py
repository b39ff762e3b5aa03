"""Decoders of the rivals on a grid: features (1, C, h, w) → RGB in [-1, 1] without the skip, (1, 3, rows, columns)."""

from functools import reduce
from itertools import product
from math import pi
from operator import add

import torch

from srno.export.axes import Axis, cell_of
from srno.export.graph import Graph
from srno.export.layers import bilinear, convolve, linear, pixels_last, to_picture
from srno.export.liftings import GraphLifting
from srno.export.value import Value
from srno.rivals.fixed import FixedScale
from srno.rivals.liif import LIIF
from srno.rivals.lte import LTE
from srno.rivals.metasr import MetaSR
from srno.rivals.mlp import MLP
from srno.rivals.parts import Perceptron


def liif(graph: Graph, model: LIIF, features: Value, y: Axis, x: Axis) -> Value:
    """The first linear map acts on unfolded features, δ and c: a 3×3 convolution, a map of δ, and a constant."""
    first = model.perceptron.linears()[0]
    kernel = first.weight[:, :-4].unflatten(1, (-1, 3, 3))
    W_delta, W_cell = first.weight[:, -4:-2].T, first.weight[:, -2:].T
    cell = cell_of(y, x).cast(graph.precision)
    bias = graph.affine(cell, graph.weight("first.cell", W_cell), graph.weight("first.bias", first.bias))
    hidden = pixels_last(graph.convolution(features, graph.weight("first.features", kernel))) + bias
    (down, down_shares), (across, across_shares) = y.neighbours(), x.neighbours()
    W_y, W_x = (graph.weight(f"first.{name}", weight) for name, weight in zip("yx", W_delta, strict=True))
    looks: list[Value] = []
    for i, j in product((0, 1), repeat=2):
        rows = hidden.gather(down[i].index) + down[i].delta.cast(graph.precision).expand_dims(1, 2) * W_y
        there = rows.gather(across[j].index, 1) + across[j].delta.cast(graph.precision).expand_dims(1) * W_x
        looks.append(_look(graph, model.perceptron, there, 1, y, x) * _share(down_shares[i], across_shares[j]))
    return reduce(add, looks)


def _look(graph: Graph, model: Perceptron, there: Value, first: int, y: Axis, x: Axis) -> Value:
    """Apply the perceptron from layer `first` on, (rows, columns, d) → (1, 3, rows, columns)."""
    width = there.shape[2]
    assert isinstance(width, int)
    return _perceptron(graph, model, there.reshape([-1, width], (f"{y.dim}*{x.dim}", width)), first, y, x)


def _perceptron(graph: Graph, model: Perceptron, hidden: Value, first: int, y: Axis, x: Axis) -> Value:
    """Apply the linear maps from number `first` on, with ReLU between, (rows·columns, d) → (1, 3, rows, columns)."""
    *inner, last = list(enumerate(model.linears()))[first:]
    for i, layer in inner:
        hidden = linear(graph, f"perceptron.layers.{i}", layer, hidden.apply("Relu") if i else hidden)
    i, layer = last
    return to_picture(graph, f"perceptron.layers.{i}", layer, hidden.apply("Relu") if i else hidden, y, x)


def _share(down: Value, across: Value) -> Value:
    """Weights (rows, columns) of one of the four neighbours, from those of both axes."""
    return down.expand_dims(1) * across


def lte(graph: Graph, model: LTE, features: Value, y: Axis, x: Axis) -> Value:
    """Amplitudes and frequencies are computed once per picture pixel, waves and perceptron at every neighbour."""
    coefficients = pixels_last(convolve(graph, "coefficient", model.coefficient, features))
    frequencies = pixels_last(convolve(graph, "frequency", model.frequency, features))
    J = model.phase.out_features
    cell = cell_of(y, x).cast(graph.precision)
    phase = (cell @ graph.weight("phase.weight", model.phase.weight.T)).cast("float32")
    (down, down_shares), (across, across_shares) = y.neighbours(), x.neighbours()
    looks: list[Value] = []
    for i, j in product((0, 1), repeat=2):
        A, F = (a.gather(down[i].index).gather(across[j].index, 1) for a in (coefficients, frequencies))
        F_y, F_x = (F.slice(2, half * J, (half + 1) * J, J).cast("float32") for half in (0, 1))
        # never below fp32, because angles grow with the frequencies
        angle = (F_y * down[i].delta.expand_dims(1, 2) + F_x * across[j].delta.expand_dims(1) + phase) * pi
        waves = A * graph.concat([angle.apply("Cos"), angle.apply("Sin")], 2).cast(graph.precision)
        looks.append(_look(graph, model.perceptron, waves, 0, y, x) * _share(down_shares[i], across_shares[j]))
    return reduce(add, looks)


def metasr(graph: Graph, model: MetaSR, features: Value, y: Axis, x: Axis) -> Value:
    """RGB = Σ_k g_k·A_k + A_0, with 3×3 convolutions A of the features and the hidden values g of an output pixel."""
    first, last = model.perceptron.linears()
    kernels = last.weight.unflatten(0, (-1, 3, 3, 3)).permute(3, 4, 0, 1, 2)  # (RGB, width, C, 3, 3)
    constants = last.bias.unflatten(0, (-1, 3, 3, 3)).permute(3, 0, 1, 2)
    (rows, down), (columns, across) = y.corners(), x.corners()
    W_y, W_x, W_cell = (graph.weight(f"first.{name}", first.weight[:, i]) for i, name in enumerate(("y", "x", "cell")))
    height = (y.cell() * 0.5).cast(graph.precision) * W_cell + graph.weight("first.bias", first.bias)
    g = down.cast(graph.precision).expand_dims(1, 2) * W_y + across.cast(graph.precision).expand_dims(1) * W_x + height
    g = g.apply("Relu")
    channels: list[Value] = []
    for name, kernel, constant in zip("rgb", kernels, constants, strict=True):
        both = torch.cat([kernel, constant.unsqueeze(0)])
        maps = pixels_last(graph.convolution(features, graph.weight(f"filters.{name}", both)))
        there, width = maps.gather(rows).gather(columns, 1), len(kernel)
        filtered = (there.slice(2, 0, width, width) * g).cast("float32").sum(2)
        channels.append(filtered + there.slice(2, width, width + 1, 1).cast("float32"))
    return graph.concat(channels, 2).transpose(2, 0, 1).expand_dims(0)


def mlp(graph: Graph, model: MLP, features: Value, y: Axis, x: Axis) -> Value:
    """The first hidden layer is the lifting of the nearest pixel."""
    hidden = GraphLifting(graph, model.lifting).on_grid(features, y, x).apply("Relu")
    return _perceptron(graph, model.perceptron, hidden, 0, y, x)


def fixed(graph: Graph, model: FixedScale, features: Value, y: Axis, x: Axis) -> Value:
    """Bilinear values of the network's picture: at its own scale, that picture."""
    scale, picture = model.config.scale, features
    for i, layer in enumerate(model.tail):
        if isinstance(layer, torch.nn.PixelShuffle):
            picture = _shuffle(graph, picture, layer.upscale_factor)
        else:
            picture = convolve(graph, f"tail.{i}", layer, picture)
    return bilinear(picture.cast("float32"), *(_within(axis, scale) for axis in (y, x)))


def _within(axis: Axis, scale: int) -> tuple[Value, Value, Value]:
    """Bilinear stencil in the picture that the network makes of the window of the features."""
    low, high, weight = axis.between(scale)
    if axis.first is None:
        return low, high, weight
    return low - axis.first * scale, high - axis.first * scale, weight


def _shuffle(graph: Graph, x: Value, factor: int) -> Value:
    """Pixel shuffle (1, C·factor², h, w) → (1, C, factor·h, factor·w)."""
    _, channels, *sides = x.shape
    assert isinstance(channels, int)
    larger = [f"{factor}*{side}" for side in sides]
    return graph.op("DepthToSpace", [x], (1, channels // factor**2, *larger), blocksize=factor, mode="CRD")
