"""Parts that the rivals share: a perceptron, unfolded features and the local ensemble of four neighbours."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from srno.operator.grid import neighbours


class Perceptron(nn.Module):
    """Pointwise linear maps with ReLU between: `inputs` → `width`, `depth` times → `outputs`."""

    def __init__(self, inputs: int, width: int, depth: int, outputs: int) -> None:
        super().__init__()
        widths = [inputs, *[width] * depth, outputs]
        self.layers = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(widths))

    def linears(self) -> list[nn.Linear]:
        """The linear maps, typed as nn.Linear."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) → (..., outputs)."""
        return self.after_first(self.layers[0](x))

    def after_first(self, hidden: Tensor) -> Tensor:
        """(..., width) after the first linear map → (..., outputs). The input is overwritten."""
        for layer in self.layers[1:]:
            hidden = layer(hidden.relu_())
        return hidden


def unfold(features: Tensor) -> Tensor:
    """(B, C, h, w) → (B, 9·C, h, w): each pixel's 3×3 surroundings, zero outside, in the order (channel, y, x)."""
    return F.unfold(features, 3, padding=1).unflatten(-1, features.shape[-2:])


@dataclass(frozen=True)
class Neighbour:
    """One of the four low-resolution pixels around each query."""

    rows: Tensor
    """(B, n) int64"""
    columns: Tensor
    """(B, n) int64"""
    delta: Tensor
    """(B, n, 2) x - x̂ in half pixels, as (y, x)"""
    share: Tensor
    """(B, n, 1) weight in the ensemble: the diagonally opposite neighbour's share of the area"""


def four_neighbours(coords: Tensor, size: tuple[int, int]) -> Iterator[Neighbour]:
    """The neighbours of coords (B, n, 2) on a grid of `size` (h, w), in the order (-,-) (-,+) (+,-) (+,+)."""
    y, x = (neighbours(coords[..., axis], size[axis]) for axis in (0, 1))
    for i, j in product((0, 1), repeat=2):
        yield Neighbour(
            rows=y.index[..., i],
            columns=x.index[..., j],
            delta=torch.stack([y.delta[..., i], x.delta[..., j]], dim=-1),
            share=(y.share[..., i] * x.share[..., j]).unsqueeze(-1),
        )


def local_ensemble(coords: Tensor, size: tuple[int, int], answer: Callable[[Neighbour], Tensor]) -> Tensor:
    """Four answers (B, n, 3), averaged by share."""
    answers = ((answer(near), near.share) for near in four_neighbours(coords, size))
    return torch.stack([share.to(rgb.dtype) * rgb for rgb, share in answers]).sum(0)


@dataclass(frozen=True)
class Pixels:
    """Features with the channels of each pixel contiguous in memory, for lookups by pixel."""

    rows: Tensor
    """(B·h·w, C)"""
    size: tuple[int, int]

    @classmethod
    def of(cls, features: Tensor) -> "Pixels":
        return cls(features.permute(0, 2, 3, 1).reshape(-1, features.shape[1]), size_of(features))

    def at(self, rows: Tensor, columns: Tensor) -> Tensor:
        """(B, n, C) at pixels (B, n) of rows and columns."""
        height, width = self.size
        picture = torch.arange(len(rows), device=rows.device).unsqueeze(1) * height
        return F.embedding((picture + rows) * width + columns, self.rows)


def size_of(features: Tensor) -> tuple[int, int]:
    """(h, w) of a map (B, C, h, w)."""
    return features.shape[-2], features.shape[-1]


def cell_per_query(coords: Tensor, cell: Tensor) -> Tensor:
    """cell (B, 2) repeated for every query (B, n, 2)."""
    return cell.unsqueeze(1).expand_as(coords)
