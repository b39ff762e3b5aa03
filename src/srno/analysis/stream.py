"""z_0 … z_T of a picture, or of a window of it, at every output pixel, chunk by chunk."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import torch.nn.functional as F
from torch import Tensor

from srno.errors import SRNOError
from srno.field.field import Field
from srno.field.plan import plan_render
from srno.machine import default_budget
from srno.operator import fused
from srno.operator.galerkin import GalerkinLayer
from srno.operator.sampling import Chunk, Sampling

LARGEST_BUDGET = 512 << 20
"""Bytes for the pieces of a pass, at most: more does not make it faster."""

Layer: TypeAlias = Callable[[Tensor], Tensor]
"""A Galerkin layer with a known integral: z (n, d_z) → the same."""


def layers_of(field: Field) -> list[GalerkinLayer]:
    """The T Galerkin layers of the field's model; a model without any has nothing to analyse."""
    layers = field.model.kernel_layers()
    if not layers:
        raise SRNOError(f"{type(field.model).__name__} has no Galerkin layers; only SRNO models have basis functions")
    return layers


def with_integral(layer: GalerkinLayer, M: Tensor) -> Layer:
    """The layer as a pointwise map, its integral M (heads, width, width) known."""
    A, a = fused.first_map(layer, M.to(layer.W1.weight.dtype).unsqueeze(0))
    return lambda z: z + layer.W2(F.gelu(F.linear(z, A[0], a[0])))


def stream(
    field: Field, sampling: Sampling, layers: Sequence[Layer], *, cell_clip: bool
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
