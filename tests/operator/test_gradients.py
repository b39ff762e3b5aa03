"""Analytic gradients of lifting and Galerkin layer against finite differences."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call

from small_models import CONFIGS, random_model
from srno.operator.grid import cell_of


def smooth_coords(n: int, height: int, width: int) -> Tensor:
    """(1, n, 2) in every part of a picture, but away from pixel centres and borders, where neighbours change."""
    generator = torch.Generator().manual_seed(0)
    offsets = torch.rand(1, n, 2, generator=generator, dtype=torch.float64) * 0.2 + 0.15
    offsets += torch.randint(0, 2, (1, n, 2), generator=generator) / 2
    pixels = torch.stack([torch.arange(n) % height, torch.arange(n) * (width - 1) // (n - 1)], dim=-1)
    return (pixels + offsets) * 2 / torch.tensor([height, width]) - 1


@pytest.mark.parametrize("name", ["edsr", "edsr-nearest"])
def test_the_lifting_passes_gradcheck(name: str) -> None:
    lifting = random_model(CONFIGS[name]).lifting
    features = torch.randn(1, 5, 3, 4, dtype=torch.float64, requires_grad=True)
    coords = smooth_coords(8, 3, 4).requires_grad_()
    cell = cell_of(1.5, 2.5).clone().requires_grad_()
    assert gradcheck(lifting, (features, coords, cell))


@pytest.mark.parametrize("name", ["edsr", "edsr-one-layer", "edsr-narrow-heads"])
def test_the_galerkin_layer_passes_gradcheck(name: str) -> None:
    layer = random_model(CONFIGS[name]).layers[0]
    names, parameters = zip(*layer.named_parameters(), strict=True)
    z = torch.randn(2, 5, CONFIGS[name].d_z, dtype=torch.float64, requires_grad=True)

    def evaluate(z: Tensor, *values: Tensor) -> Tensor:
        return functional_call(layer, dict(zip(names, values, strict=True)), (z,))

    assert gradcheck(evaluate, (z, *parameters))
