"""Every rival against an evaluation of its equations by explicit loops."""

from functools import partial

import numpy as np
import pytest
import rivals_reference as reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rival_models import CONFIGS, POINTWISE, random_rival
from torch import Tensor

from small_models import grid_queries, random_coords, random_image
from srno.config import FixedScaleConfig, LIIFConfig, LTEConfig, MetaSRConfig, ModelConfig
from srno.operator.grid import cell_of
from srno.operator.model import Model


def loops(model: Model, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
    """Values of the reference, picture by picture, for coords (B, n, 2)."""
    tensors = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    match model.config:
        case LIIFConfig():
            evaluate = reference.liif
        case LTEConfig():
            evaluate = reference.lte
        case MetaSRConfig():
            evaluate = reference.metasr
        case FixedScaleConfig(scale=scale):
            evaluate = partial(reference.fixed, scale=scale)
        case _:
            evaluate = reference.mlp
    items = zip(image.numpy(), coords.numpy(), cell.numpy(), strict=True)
    return torch.from_numpy(np.stack([evaluate(tensors, *item) for item in items]))


def assert_agrees(model: Model, image: Tensor, coords: Tensor, cell: Tensor) -> None:
    with torch.no_grad():
        answer = model(image, coords, cell)
    torch.testing.assert_close(answer, loops(model, image, coords, cell), rtol=0, atol=1e-9)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_random_coordinates(config: ModelConfig) -> None:
    image = random_image(4, 6, batch=2)
    cell = torch.cat([cell_of(1.7, 2.9), cell_of(3.3, 5.2)])
    assert_agrees(random_rival(config), image, random_coords(9, batch=2), cell)


@pytest.mark.parametrize("size", [(3, 5), (6, 10), (9, 15), (7, 8)], ids=str)
@pytest.mark.parametrize("config", POINTWISE.values(), ids=POINTWISE.keys())
def test_grids(config: ModelConfig, size: tuple[int, int]) -> None:
    """Integer factors put queries on centres and corners of pixels, where both neighbours may be the same one."""
    assert_agrees(random_rival(config), random_image(3, 5), *grid_queries((3, 5), size))


@settings(max_examples=15)
@given(name=st.sampled_from(list(POINTWISE)), height=st.integers(1, 4), width=st.integers(1, 4), data=st.data())
def test_grids_of_any_size(name: str, height: int, width: int, data: st.DataObject) -> None:
    size = data.draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    seed = data.draw(st.integers(0, 1000))
    queries = grid_queries((height, width), size)
    assert_agrees(random_rival(POINTWISE[name], seed=seed), random_image(height, width, seed=seed), *queries)


@pytest.mark.parametrize("scale", [(6.0, 6.0), (2.0, 9.0), (5.5, 3.0)], ids=str)
def test_a_clipped_cell_does_not_move_the_corners_of_metasr(scale: tuple[float, float]) -> None:
    model = random_rival(MetaSRConfig(encoder=POINTWISE["metasr"].encoder, width=7))
    image, coords, cell = random_image(4, 6), random_coords(12), cell_of(*scale)
    moved, clipped = model.clip_cell(coords, cell, (4, 6))
    assert clipped.tolist() == [[2 / min(factor, 4) for factor in scale]]
    with torch.no_grad():
        answer = model(image, moved, clipped)[0]
    tensors = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    arrays = (image[0].numpy(), coords[0].numpy(), cell[0].numpy())
    expected = reference.metasr(tensors, *arrays, filter_cell=clipped[0].numpy())
    torch.testing.assert_close(answer, torch.from_numpy(expected), rtol=0, atol=1e-9)
