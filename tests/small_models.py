"""Small models with random values in every parameter, and queries for them."""

from math import sqrt
from typing import cast

import torch
from torch import Tensor

from srno.checkpoints.build import create_model
from srno.config import EDSRConfig, RDNConfig, SRNOConfig
from srno.operator.grid import cell_of, make_grid
from srno.operator.srno import SRNO

EDSR = EDSRConfig(channels=5, blocks=2)
RDN = RDNConfig(channels=4, blocks=2, layers=3, growth=2)

CONFIGS = {
    "edsr": SRNOConfig(encoder=EDSR, d_z=12, heads=3, iterations=2, projection_width=7),
    "edsr-one-layer": SRNOConfig(encoder=EDSR, d_z=8, heads=1, iterations=1, projection_width=5),
    "edsr-narrow-heads": SRNOConfig(encoder=EDSR, d_z=8, heads=4, iterations=3, projection_width=8),
    "edsr-nearest": SRNOConfig(encoder=EDSR, lifting="nearest", d_z=6, heads=2, iterations=2, projection_width=9),
    "rdn": SRNOConfig(encoder=RDN, d_z=12, heads=4, iterations=2, projection_width=6),
    "rdn-nearest": SRNOConfig(encoder=RDN, lifting="nearest", d_z=10, heads=2, iterations=1, projection_width=4),
}


def random_model(config: SRNOConfig, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> SRNO:
    """A model in evaluation mode with random parameters, norms and biases included."""
    model = cast(SRNO, create_model(config))
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if name.endswith("norm.weight"):
            value = 1 + 0.3 * noise
        elif name.endswith("bias"):
            value = 0.3 * noise
        else:
            value = noise / sqrt(parameter[0].numel())
        parameter.data = value.to(dtype)
    return model.eval()


def random_image(height: int, width: int, *, batch: int = 1, seed: int = 1) -> Tensor:
    """(batch, 3, height, width) in [-1, 1]."""
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(batch, 3, height, width, generator=generator, dtype=torch.float64) - 1


def random_coords(n: int, *, batch: int = 1, seed: int = 2) -> Tensor:
    """(batch, n, 2) anywhere in Ω."""
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(batch, n, 2, generator=generator, dtype=torch.float64) - 1


def grid_queries(lr_size: tuple[int, int], size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Coordinates (1, n, 2) of a whole picture of `size`, and their cell (1, 2)."""
    return make_grid(*size).reshape(1, -1, 2), cell_of(size[0] / lr_size[0], size[1] / lr_size[1])
