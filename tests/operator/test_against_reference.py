"""The model against an evaluation of the equations by explicit loops."""

import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from small_models import CONFIGS, grid_queries, random_coords, random_image, random_model
from srno.config import SRNOConfig
from srno.operator.grid import cell_of
from srno.operator.srno import SRNO


def loops(model: SRNO, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
    """Values of the reference, picture by picture, for coords (B, n, 2)."""
    tensors = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    answers = [
        torch.from_numpy(reference.evaluate(tensors, *(a.numpy() for a in item), lifting=model.config.lifting))
        for item in zip(image, coords, cell, strict=True)
    ]
    return torch.stack(answers)


def assert_agrees(model: SRNO, image: Tensor, coords: Tensor, cell: Tensor) -> None:
    with torch.no_grad():
        answers = model.reference(image, coords, cell), model(image, coords, cell)
    expected = loops(model, image, coords, cell)
    for answer in answers:
        torch.testing.assert_close(answer, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_random_coordinates(config: SRNOConfig) -> None:
    image = random_image(4, 6, batch=2)
    cell = torch.cat([cell_of(1.7, 2.9), cell_of(3.3, 1.2)])
    assert_agrees(random_model(config), image, random_coords(11, batch=2), cell)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@pytest.mark.parametrize("size", [(5, 7), (8, 9), (12, 3)], ids=str)
def test_grids_of_any_size(config: SRNOConfig, size: tuple[int, int]) -> None:
    """×1.25…×3 and ×1…×3, per axis, with queries on centres and borders of the 4×3 pixels below."""
    assert_agrees(random_model(config), random_image(4, 3), *grid_queries((4, 3), size))


@settings(max_examples=12)
@given(
    name=st.sampled_from(list(CONFIGS)),
    seed=st.integers(0, 2**31),
    lr_size=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    n=st.integers(1, 9),
    scales=st.tuples(st.floats(1, 30), st.floats(1, 30)),
)
def test_small_pictures_at_any_scale(
    name: str, seed: int, lr_size: tuple[int, int], n: int, scales: tuple[float, float]
) -> None:
    model = random_model(CONFIGS[name], seed=seed)
    assert_agrees(model, random_image(*lr_size, seed=seed), random_coords(n, seed=seed), cell_of(*scales))


@pytest.mark.parametrize("name", ["edsr", "edsr-nearest"])
def test_corners_and_edges(name: str) -> None:
    ends = torch.tensor([-1.0, -0.999, -0.3, 0.3, 0.999, 1.0], dtype=torch.float64)
    coords = torch.cartesian_prod(ends, ends).unsqueeze(0)
    assert_agrees(random_model(CONFIGS[name]), random_image(3, 4), coords, cell_of(2, 2))


@pytest.mark.parametrize("factor", [1, 3, 5])
def test_centres_of_the_last_row_and_column(factor: int) -> None:
    """Odd factors put queries on the outermost centres, where both neighbours of an axis are one pixel."""
    size = (3 * factor, 4 * factor)
    coords, cell = grid_queries((3, 4), size)
    last = coords.reshape(*size, 2)[-(factor // 2) - 1, -(factor // 2) - 1]
    torch.testing.assert_close(last, torch.tensor([2 / 3, 3 / 4], dtype=torch.float64), rtol=0, atol=1e-15)
    assert_agrees(random_model(CONFIGS["edsr"]), random_image(3, 4), coords, cell)


@pytest.mark.parametrize("name", ["edsr", "edsr-nearest"])
@pytest.mark.parametrize(("lr_size", "size"), [((6, 2), (9, 2)), ((2, 6), (2, 9))], ids=str)
def test_queries_on_pixel_borders(name: str, lr_size: tuple[int, int], size: tuple[int, int]) -> None:
    """Every third query of ×1.5 lies between two pixels, in fp64 sometimes one rounding below; the upper one counts."""
    assert_agrees(random_model(CONFIGS[name]), random_image(*lr_size), *grid_queries(lr_size, size))


@pytest.mark.parametrize("name", ["edsr", "edsr-nearest", "rdn"])
@pytest.mark.parametrize(
    ("lr_size", "size"), [((1, 1), (1, 1)), ((1, 1), (4, 3)), ((1, 6), (2, 13)), ((5, 1), (9, 2))], ids=str
)
def test_pictures_of_one_pixel_row_or_column(name: str, lr_size: tuple[int, int], size: tuple[int, int]) -> None:
    assert_agrees(random_model(CONFIGS[name]), random_image(*lr_size), *grid_queries(lr_size, size))


def test_a_scale_of_30() -> None:
    assert_agrees(random_model(CONFIGS["edsr-one-layer"]), random_image(1, 2), *grid_queries((1, 2), (30, 60)))
