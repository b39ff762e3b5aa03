"""Columns of Q, K and V and channels of z as maps over the output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from srno.analysis.summary import (
    MATRICES,
    LatentSummary,
    LayerFunction,
    Matrix,
    layers_of,
    stream,
    summarise,
    with_integral,
)
from srno.errors import SRNOError
from srno.field.field import Field
from srno.operator.sampling import Sampling, whole_picture

ColumnMaps: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class BasisMaps:
    """Basis functions at every output pixel."""

    channels: Mapping[Matrix, tuple[int, ...]]
    """the columns that were taken, for each matrix"""
    maps: Mapping[Matrix, ColumnMaps]
    """(T or T+1, channels, height, width): Q, K and V of T layers, z_0 … z_T"""


def choose_by_energy(summary: LatentSummary, count: int) -> dict[Matrix, tuple[int, ...]]:
    """The columns with the largest energy: the variance over the output, as a share of its matrix, summed over layers.

    So the columns are the same in every layer.
    """
    chosen: dict[Matrix, tuple[int, ...]] = {}
    for matrix in MATRICES:
        energies = [summary.energy(matrix, t) for t in range(summary.count(matrix))]
        total = np.sum([energy / energy.sum() for energy in energies], axis=0)
        chosen[matrix] = tuple(int(column) for column in np.argsort(-total, kind="stable")[:count])
    return chosen


@torch.no_grad()
def basis_maps(
    field: Field,
    size: tuple[int, int],
    channels: Mapping[Matrix, Sequence[int]],
    *,
    summary: LatentSummary | None = None,
    cell_clip: bool = True,
) -> BasisMaps:
    """Evaluate columns of Q, K, V and z on the whole output of (height, width), in one pass if its summary is given."""
    layers = layers_of(field)
    d_z = layers[0].query.in_features
    for name, columns in channels.items():
        if any(not 0 <= column < d_z for column in columns):
            raise SRNOError(f"channels {', '.join(map(str, columns))} of {name}: there are 0 … {d_z - 1}")
    summary = summary or summarise(field, size, cell_clip=cell_clip)
    known = [
        with_integral(layer, torch.from_numpy(M).to(field.image.device))
        for layer, M in zip(layers, summary.kernels, strict=True)
    ]
    return window_maps(field, whole_picture(field.size, size), known, channels, cell_clip=cell_clip)


@torch.no_grad()
def window_maps(
    field: Field,
    sampling: Sampling,
    known: Sequence[LayerFunction],
    channels: Mapping[Matrix, Sequence[int]],
    *,
    cell_clip: bool = True,
) -> BasisMaps:
    """Evaluate columns of Q, K, V and z at the pixels of a window, with layers whose integrals are known."""
    layers = layers_of(field)
    maps: dict[Matrix, ColumnMaps] = {
        name: np.empty((len(layers) + (name == "z"), len(columns), *sampling.size), np.float32)
        for name, columns in channels.items()
    }
    for chunk, states in stream(field, sampling, known, cell_clip=cell_clip):
        window = np.s_[chunk.top : chunk.bottom, chunk.left : chunk.right]
        for name, columns in channels.items():
            for t, out in enumerate(maps[name]):
                linear = _linear(layers[t], name) if name != "z" else None
                values = _columns(states[t], columns, linear)
                out[:, *window] = values.reshape(len(columns), chunk.bottom - chunk.top, -1)
    return BasisMaps({name: tuple(columns) for name, columns in channels.items()}, maps)


def _linear(layer: nn.Module, name: Matrix) -> nn.Linear:
    return getattr(layer, {"q": "query", "k": "key", "v": "value"}[name])


def _columns(z: Tensor, columns: Sequence[int], linear: nn.Linear | None) -> ColumnMaps:
    """Some columns of z (n, d_z), or of its linear map: (columns, n)."""
    chosen = list(columns)
    values = z[:, chosen] if linear is None else z @ linear.weight[chosen].T + linear.bias[chosen]
    return values.T.float().cpu().numpy()
