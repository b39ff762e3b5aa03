"""Sums over the whole output: the Gram matrix of every z_t, and the integral M of every layer.

Q, K and V are affine in z, so their Gram matrices follow from that of [z, 1]. A Gram matrix in float64 resolves
singular values down to about 1e-7 of the largest one, which is also the rounding of z in float32.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from srno.errors import SRNOError
from srno.field.engine import Integrals
from srno.field.field import Field
from srno.field.plan import plan_render
from srno.machine import default_budget
from srno.operator import fused
from srno.operator.galerkin import GalerkinLayer
from srno.operator.sampling import Chunk, Sampling, whole_picture

Matrix: TypeAlias = Literal["z", "q", "k", "v"]
"""z, or one of its linear maps Q, K and V; each has a row per output pixel and d_z columns."""
MATRICES: tuple[Matrix, ...] = get_args(Matrix)
Array64: TypeAlias = NDArray[np.float64]

LARGEST_BUDGET = 512 << 20
"""Bytes for the pieces of a pass, at most: more does not make it faster."""

LayerFunction: TypeAlias = Callable[[Tensor], Tensor]
"""A Galerkin layer with a known integral: z (n, d_z) → the same."""


def layers_of(field: Field) -> list[GalerkinLayer]:
    """The T Galerkin layers of the field's model; a model without any has nothing to analyse."""
    layers = field.model.kernel_layers()
    if not layers:
        raise SRNOError(f"{type(field.model).__name__} has no Galerkin layers; only SRNO models have basis functions")
    return layers


def with_integral(layer: GalerkinLayer, M: Tensor) -> LayerFunction:
    """The layer as a pointwise map, its integral M (heads, width, width) known."""
    A, a = fused.first_map(layer, M.to(layer.W1.weight.dtype).unsqueeze(0))
    return lambda z: z + layer.W2(F.gelu(F.linear(z, A[0], a[0])))


def stream(
    field: Field, sampling: Sampling, layers: Sequence[LayerFunction], *, cell_clip: bool
) -> Iterator[tuple[Chunk, list[Tensor]]]:
    """Yield every chunk of the sampled window with z_0 (n, d_z) and z after each of the layers."""
    budget = min(field.memory or default_budget(field.image.device), LARGEST_BUDGET)
    plan = plan_render(field.model.footprint(), sampling, budget, field.image.device)
    grid = field.model.on_grid(field.features, field.image, sampling, cell_clip=cell_clip)
    for chunk, z in grid.chunks(plan.chunk, plan.strip):
        # the grid reuses the memory of z_0 for the next chunk
        states = [z.clone()]
        for layer in layers:
            states.append(layer(states[-1]))
        yield chunk, states


@dataclass(frozen=True)
class LatentSummary:
    """What is known of z, Q, K and V of a picture at one output size, without the values at single pixels."""

    points: int
    """n: output pixels"""
    moments: Array64
    """(T+1, d_z+1, d_z+1): Gram matrix of [z_t, 1] for t = 0 … T"""
    kernels: Array64
    """(T, heads, width, width): M of each layer"""
    maps: dict[Matrix, Array64]
    """(T, d_z+1, d_z) weights of Q, K and V on [z, 1]"""

    @property
    def layers(self) -> int:
        """T: Galerkin layers."""
        return len(self.kernels)

    def count(self, matrix: Matrix) -> int:
        """How many there are: z_0 … z_T, but Q, K and V of T layers."""
        return self.layers + (matrix == "z")

    def gram(self, matrix: Matrix, t: int, other: Matrix | None = None) -> Array64:
        """XᵀX (d_z, d_z) of z_t, or of Q, K or V of the layer after z_t; XᵀY with another of them."""
        left, right = (self._map(name, t) for name in (matrix, other or matrix))
        return left.T @ self.moments[t] @ right

    def spectrum(self, matrix: Matrix, t: int) -> Array64:
        """Singular values (d_z,) in descending order."""
        return np.sqrt(np.linalg.eigvalsh(self.gram(matrix, t)).clip(0))[::-1]

    def energy(self, matrix: Matrix, t: int) -> Array64:
        """Variance of each column (d_z,) over the output."""
        weights = self._map(matrix, t)
        mean = self.moments[t][-1] @ weights / self.points
        return (np.diagonal(self.gram(matrix, t)) / self.points - mean**2).clip(0)

    def coercivity(self, t: int) -> Array64:
        """The constant c (heads,) of max_v B(v, q)/‖v‖ ≥ c‖q‖ for q in the span of a head's Q and v in that of its V.

        It is the cosine of the largest angle between the two subspaces of functions on the output pixels.
        """
        heads = self.kernels.shape[1]
        blocks = [_head_blocks(gram, heads) for gram in (self.gram("q", t), self.gram("v", t), self.gram("q", t, "v"))]
        whitened = [_inverse_root(q) @ both @ _inverse_root(v) for q, v, both in zip(*blocks, strict=True)]
        return np.array([np.linalg.svd(each, compute_uv=False)[-1] for each in whitened])

    def _map(self, matrix: Matrix, t: int) -> Array64:
        d_z = self.moments.shape[1] - 1
        return np.eye(d_z + 1, d_z) if matrix == "z" else self.maps[matrix][t]


@torch.no_grad()
def summarise(field: Field, size: tuple[int, int], *, cell_clip: bool = True) -> LatentSummary:
    """Sum over all pixels of the output of (height, width), in T+1 passes."""
    known: list[LayerFunction] = []
    kernels: list[Tensor] = []
    moments: list[Tensor] = []
    layers = layers_of(field)
    for layer in (*layers, None):
        total, integral = _sum(field, size, known, layer, cell_clip)
        moments.append(total)
        if layer is not None:
            kernels.append(integral / (size[0] * size[1]))
            known.append(with_integral(layer, kernels[-1]))
    return _summary(size[0] * size[1], layers, moments, kernels)


@torch.no_grad()
def summarise_points(layers: Sequence[GalerkinLayer], z: Tensor, known: Integrals) -> LatentSummary:
    """Sum over points with latent vectors z_0 (n, d_z), the integrals known: an estimate of `summarise`."""
    states = [z]
    for step in known:
        states.append(step(states[-1]))
    return _summary(len(z), layers, [_moments(state) for state in states], [step.M for step in known])


def _summary(
    points: int, layers: Sequence[GalerkinLayer], moments: Sequence[Tensor], kernels: Sequence[Tensor]
) -> LatentSummary:
    maps: dict[Matrix, Array64] = {
        "q": np.stack([_weights(layer.query) for layer in layers]),
        "k": np.stack([_weights(layer.key) for layer in layers]),
        "v": np.stack([_weights(layer.value) for layer in layers]),
    }
    return LatentSummary(
        points, torch.stack(list(moments)).cpu().numpy(), torch.stack(list(kernels)).cpu().numpy(), maps
    )


def _sum(
    field: Field, size: tuple[int, int], known: list[LayerFunction], layer: GalerkinLayer | None, cell_clip: bool
) -> tuple[Tensor, Tensor]:
    """Gram matrix of [z, 1] after the known layers, and the sum of k̃ᵀṽ of the next layer, both in float64."""
    total = integral = torch.zeros((), dtype=torch.float64, device=field.image.device)
    for _, states in stream(field, whole_picture(field.size, size), known, cell_clip=cell_clip):
        z = states[-1]
        total = total + _moments(z)
        if layer is not None:
            integral = integral + layer.integral(z.unsqueeze(0))[0].double() * len(z)
    return total, integral


def _moments(z: Tensor) -> Tensor:
    """Gram matrix (d_z+1, d_z+1) of [z, 1] in float64, for z (n, d_z)."""
    wide = torch.cat([z.double(), torch.ones_like(z[:, :1], dtype=torch.float64)], dim=1)
    return wide.T @ wide


def _weights(linear: nn.Linear) -> Array64:
    """The affine map as a matrix (d_z+1, d_z) on [z, 1]."""
    return torch.cat([linear.weight.T, linear.bias.unsqueeze(0)]).double().cpu().numpy()


def _head_blocks(gram: Array64, heads: int) -> Array64:
    """The diagonal blocks (heads, width, width) of a Gram matrix."""
    width = len(gram) // heads
    return np.stack([gram[i : i + width, i : i + width] for i in range(0, len(gram), width)])


def _inverse_root(gram: Array64) -> Array64:
    values, vectors = np.linalg.eigh(gram)
    # directions that rounding has made negative or zero carry no function
    inverse = np.where(values > values[-1] * 1e-14, values, np.inf) ** -0.5
    return vectors * inverse @ vectors.T


def effective_rank(singular_values: NDArray[np.floating]) -> float:
    """Compute exp(-Σ p log p) with p_i = σ_i / Σσ: 1 for one direction, d for d equally strong ones.

    >>> import numpy as np
    >>> round(effective_rank(np.ones(7)), 6)
    7.0
    """
    shares = singular_values / singular_values.sum()
    positive = shares[shares > 0]
    return float(np.exp(-(positive * np.log(positive)).sum()))


def numerical_rank(singular_values: NDArray[np.floating], tolerance: float) -> int:
    """Count the singular values above `tolerance` times the largest one.

    >>> import numpy as np
    >>> numerical_rank(np.array([1.0, 0.02, 0.003]), 1e-2)
    2
    """
    return int((singular_values > tolerance * singular_values.max()).sum())


def single_precision_tolerance(points: int) -> float:
    """The tolerance of `matrix_rank` in NumPy and PyTorch for a matrix of float32 with `points` rows: n · 2⁻²³."""
    return points * 2.0**-23


def kernel_distance(first: Array64, second: Array64) -> Array64:
    """Distance of M (T, heads, width, width) of two fields, for each layer: (T,).

    It is the Frobenius norm of the difference over the mean of both norms: 0 for equal matrices, √2 for orthogonal
    ones of equal norm, 2 for opposite ones.
    """
    difference, *norms = (np.linalg.norm(M.reshape(len(M), -1), axis=1) for M in (first - second, first, second))
    return 2 * difference / (norms[0] + norms[1])


def halves(pixels: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """The left, right, upper and lower half of a picture (h, w, 3)."""
    height, width = pixels.shape[0] // 2, pixels.shape[1] // 2
    return {
        "left": pixels[:, :width],
        "right": pixels[:, -width:],
        "upper": pixels[:height],
        "lower": pixels[-height:],
    }
