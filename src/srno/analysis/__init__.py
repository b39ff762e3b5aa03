"""What the operator has learnt: basis functions, ranks and kernel matrices, as arrays.

Everything is computed chunk by chunk over the whole output, in memory that does not grow with it.

>>> import torch, srno
>>> from srno.analysis import effective_rank, summarise
>>> summary = summarise(srno.lift(srno.load("default"), torch.zeros(3, 12, 16)), (24, 32))
>>> summary.kernels.ndim  # layers, heads, width, width
4
>>> effective_rank(summary.spectrum("z", summary.layers)) > 1
True
"""

from srno.analysis.basis import BasisMaps, basis_maps, choose_by_energy, window_maps
from srno.analysis.summary import (
    MATRICES,
    LatentSummary,
    Matrix,
    effective_rank,
    halves,
    kernel_distance,
    numerical_rank,
    single_precision_tolerance,
    summarise,
    summarise_points,
)

__all__ = [
    "MATRICES",
    "BasisMaps",
    "LatentSummary",
    "Matrix",
    "basis_maps",
    "choose_by_energy",
    "effective_rank",
    "halves",
    "kernel_distance",
    "numerical_rank",
    "single_precision_tolerance",
    "summarise",
    "summarise_points",
    "window_maps",
]
