"""The rivals' decoders with fewer products: what does not depend on the query is computed once, at low resolution.

All rivals are pointwise, so their queries can be answered in chunks of any size: `prepare` does a picture's part of
the work and returns the function that answers them. LTE+ answers whole rows and columns instead: `prepare_maps`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from srno.operator.grid import Neighbours, neighbours
from srno.operator.projection import bilinear
from srno.rivals.fixed import FixedScale
from srno.rivals.liif import LIIF
from srno.rivals.lte import LTE, waves
from srno.rivals.metasr import MetaSR, corner_query
from srno.rivals.mlp import MLP
from srno.rivals.parts import Neighbour, local_ensemble, size_of

Rival: TypeAlias = LIIF | LTE | MetaSR | MLP | FixedScale
Answer: TypeAlias = Callable[[Tensor], Tensor]
"""coords (B, n, 2) → RGB (B, n, 3)"""
AnswerMaps: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""coordinates of rows (H,) and of columns (W,) → RGB (B, 3, H, W)"""


def prepare(model: Rival, features: Tensor, image: Tensor, cell: Tensor) -> Answer:
    """The function coords ↦ model.decode(features, image, coords, cell), by the fewest products."""
    match model:
        case LIIF():
            return _prepare_liif(model, features, image, cell)
        case LTE():
            return _prepare_lte(model, features, image, cell)
        case MetaSR():
            return _prepare_metasr(model, features, image, cell)
        case MLP():
            return lambda coords: model.decode(features, image, coords, cell)
        case FixedScale():
            picture = model.tail(features)
            return lambda coords: bilinear(picture, coords).to(image.dtype)


@dataclass(frozen=True)
class _Pixels:
    """Features as rows that lie together in memory, to be looked up pixel by pixel."""

    rows: Tensor
    """(B·h·w, C)"""
    size: tuple[int, int]

    @classmethod
    def of(cls, features: Tensor) -> "_Pixels":
        return cls(features.permute(0, 2, 3, 1).reshape(-1, features.shape[1]), size_of(features))

    def at(self, rows: Tensor, columns: Tensor) -> Tensor:
        """(B, n, C) at pixels (B, n) of rows and columns."""
        height, width = self.size
        picture = torch.arange(len(rows), device=rows.device).unsqueeze(1) * height
        return F.embedding((picture + rows) * width + columns, self.rows)


def _prepare_liif(model: LIIF, features: Tensor, image: Tensor, cell: Tensor) -> Answer:
    """The first linear map acts on unfolded features, δ and c: a 3×3 convolution, a map of δ, and a constant."""
    first = model.perceptron.linears()[0]
    channels = features.shape[1]
    kernel = first.weight[:, :-4].unflatten(1, (channels, 3, 3))
    W_delta, W_cell = first.weight[:, -4:-2], first.weight[:, -2:]
    constant = F.linear(cell.to(features.dtype), W_cell, first.bias)
    hidden = _Pixels.of(F.conv2d(features, kernel, padding=1) + constant[..., None, None])

    def look(near: Neighbour) -> Tensor:
        there = hidden.at(near.rows, near.columns)
        return model.perceptron.after_first(there + F.linear(near.delta.to(there.dtype), W_delta))

    return lambda coords: local_ensemble(coords, hidden.size, look).to(image.dtype)


def _prepare_lte(model: LTE, features: Tensor, image: Tensor, cell: Tensor) -> Answer:
    """The estimators' maps and the phase are the picture's; the rest is per query as it stands."""
    coefficients, frequencies = _Pixels.of(model.coefficient(features)), _Pixels.of(model.frequency(features))
    phase = model.phase(cell.to(features.dtype)).unsqueeze(1)

    def look(near: Neighbour) -> Tensor:
        coefficient, frequency = (a.at(near.rows, near.columns) for a in (coefficients, frequencies))
        return model.perceptron(waves(coefficient, frequency, near.delta.split(1, dim=-1), phase, dim=-1))

    return lambda coords: (local_ensemble(coords, coefficients.size, look) + bilinear(image, coords)).to(image.dtype)


def _prepare_metasr(model: MetaSR, features: Tensor, image: Tensor, cell: Tensor) -> Answer:
    """Features · filter is bilinear in the unfolded features and in the perceptron's hidden values g.

    So RGB = Σ_k g_k·A_k + A_0, where the A are 3×3 convolutions of the features: no filter is ever formed.
    """
    first, last = model.perceptron.linears()
    channels, width = features.shape[1], first.out_features
    kernels = torch.cat([last.weight, last.bias.unsqueeze(1)], dim=1).unflatten(0, (channels, 3, 3, 3))
    kernels = kernels.permute(3, 4, 0, 1, 2).flatten(0, 1)
    A = _Pixels.of(F.conv2d(features, kernels, padding=1))

    def answer(coords: Tensor) -> Tensor:
        rows, columns, place = corner_query(coords, cell, A.size)
        g = F.relu(first(place.to(features.dtype)))
        there = A.at(rows, columns).unflatten(-1, (3, width + 1))
        return ((there[..., :-1] @ g.unsqueeze(-1)).squeeze(-1) + there[..., -1]).to(image.dtype)

    return answer


def prepare_maps(model: LTE, features: Tensor, image: Tensor, cell: Tensor) -> AnswerMaps:
    """LTE+: the same function over a grid of rows and columns, as 1×1 convolutions over maps."""
    estimates = model.coefficient(features), model.frequency(features)
    phase = model.phase(cell.to(features.dtype))[..., None, None]
    *inner, last = model.perceptron.linears()

    def look(y: Neighbours, x: Neighbours, i: int, j: int) -> Tensor:
        A, frequency = (a.index_select(2, y.index[:, i]).index_select(3, x.index[:, j]) for a in estimates)
        hidden = waves(A, frequency, (y.delta[:, i, None], x.delta[:, j]), phase, dim=1)
        for layer in inner:
            hidden = _pointwise(layer, hidden).relu_()
        share = y.share[:, i, None] * x.share[:, j]
        return share.to(hidden.dtype) * _pointwise(last, hidden)

    def answer(rows: Tensor, columns: Tensor) -> Tensor:
        y, x = neighbours(rows, features.shape[-2]), neighbours(columns, features.shape[-1])
        ensemble = torch.stack([look(y, x, i, j) for i, j in product((0, 1), repeat=2)]).sum(0)
        grid = torch.stack(torch.meshgrid(rows, columns, indexing="ij"), dim=-1).flatten(0, 1)
        skip = bilinear(image, grid.expand(len(image), -1, -1))
        return (ensemble + skip.transpose(1, 2).unflatten(-1, ensemble.shape[-2:])).to(image.dtype)

    return answer


def _pointwise(layer: nn.Linear, maps: Tensor) -> Tensor:
    """A linear map as a 1×1 convolution."""
    return F.conv2d(maps, layer.weight[..., None, None], layer.bias)
