"""Dtypes of weights and coordinates, and inputs that are refused."""

import re
from typing import Any

import numpy as np
import pytest
import torch

from small_models import CONFIGS, grid_queries, random_coords, random_image, random_model
from srno.config import SRNOConfig, preset
from srno.errors import SRNOError
from srno.operator.grid import cell_of
from srno.operator.srno import SRNO
from tolerances import assert_close

LONG = (3, 300)
"""Wide enough that coordinates in half precision would miss the pixels."""


@pytest.mark.parametrize("name", ["light", "edsr-baseline-i"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_weights(name: str, dtype: torch.dtype) -> None:
    config = preset(name)
    assert isinstance(config, SRNOConfig)
    model = random_model(config, dtype=torch.float32)
    image = random_image(*LONG).float()
    coords, cell = grid_queries(LONG, (4, 450))
    with torch.no_grad():
        expected = model(image, coords.float(), cell.float())
        answer = model.to(dtype)(image.to(dtype), coords.float(), cell.float())
    assert answer.dtype == dtype
    assert_close(answer, expected)


@pytest.mark.parametrize(("name", "allowed"), [("edsr", 1e-4), ("rdn", 1e-4), ("edsr-nearest", 5e-3)])
@pytest.mark.parametrize("size", [(3, 300), (9, 450), (7, 411)], ids=str)
def test_single_and_double_precision_coordinates(name: str, allowed: float, size: tuple[int, int]) -> None:
    """fp32 weights: coordinates in fp32 find the same pixels as in fp64, on a grid full of ties too.

    What is left is the rounding of a coordinate times 300 pixels, and times 16π in the fastest octave of -i.
    """
    model = random_model(CONFIGS[name], dtype=torch.float32)
    image = random_image(*LONG).float()
    coords, cell = grid_queries(LONG, size)
    with torch.no_grad():
        fine, coarse = model(image, coords, cell), model(image, coords.float(), cell)
    assert fine.dtype == coarse.dtype == torch.float32
    assert (fine - coarse).abs().max() < allowed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_coordinates_are_refused(dtype: torch.dtype) -> None:
    model = random_model(CONFIGS["edsr"]).to(dtype)
    with pytest.raises(SRNOError, match=f"coords are {dtype}"):
        model(random_image(4, 4).to(dtype), random_coords(5).to(dtype), cell_of(2, 2))


@pytest.mark.parametrize(
    ("image", "coords", "cell", "named"),
    [
        ((3, 4, 5), (1, 6, 2), (1, 2), "image"),
        ((1, 1, 4, 5), (1, 6, 2), (1, 2), "image"),
        ((1, 4, 5, 3), (1, 6, 2), (1, 2), "image"),
        ((1, 3, 0, 5), (1, 6, 2), (1, 2), "image"),
        ((1, 3, 4, 5), (6, 2), (1, 2), "coords"),
        ((1, 3, 4, 5), (2, 6, 2), (1, 2), "coords"),
        ((1, 3, 4, 5), (1, 6, 3), (1, 2), "coords"),
        ((1, 3, 4, 5), (1, 0, 2), (1, 2), "coords"),
        ((2, 3, 4, 5), (2, 6, 2), (1, 2), "cell"),
        ((1, 3, 4, 5), (1, 6, 2), (2,), "cell"),
        ((1, 3, 4, 5), (1, 6, 2), (1, 6, 2), "cell"),
    ],
)
def test_wrong_shapes_are_refused(
    image: tuple[int, ...], coords: tuple[int, ...], cell: tuple[int, ...], named: str
) -> None:
    model = random_model(CONFIGS["edsr"])
    inputs = [torch.zeros(shape, dtype=torch.float64) for shape in (image, coords, cell)]
    with pytest.raises(SRNOError, match=rf"^{named} ha(s|ve) shape \("):
        model(*inputs)


@pytest.mark.parametrize(
    ("image", "named"),
    [
        (np.zeros((1, 3, 4, 5)), "image is a ndarray"),
        (torch.zeros(1, 3, 4, 5, dtype=torch.uint8), "image is torch.uint8; give floats"),
        (
            torch.zeros(1, 3, 4, 5, dtype=torch.float64),
            "image is torch.float64 and the model's weights are torch.float32",
        ),
    ],
    ids=["array", "bytes", "double"],
)
def test_pictures_of_another_type_than_the_weights_are_refused(image: Any, named: str) -> None:
    model = random_model(CONFIGS["edsr"], dtype=torch.float32)
    with pytest.raises(SRNOError, match=re.escape(named)):
        model(image, size=(8, 10))
    with pytest.raises(SRNOError, match=re.escape(named)):
        model(image, random_coords(5).float(), cell_of(2, 2))


@pytest.mark.parametrize("config", ["light", preset("liif/light"), None], ids=["name", "another system", "none"])
def test_an_operator_needs_its_own_config(config: Any) -> None:
    with pytest.raises(SRNOError, match=r"give an srno\.SRNOConfig"):
        SRNO(config)


def test_a_config_needs_the_config_of_an_encoder() -> None:
    with pytest.raises(SRNOError, match="encoder is 'edsr'"):
        SRNOConfig(encoder="edsr")  # pyright: ignore[reportArgumentType]
