"""The fused forms compute the same functions, for any chunk size."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rival_models import CONFIGS, POINTWISE, random_rival

from small_models import random_coords, random_image
from srno.config import LTEConfig, ModelConfig
from srno.operator.grid import cell_of, pixel_centres
from srno.rivals.lte import LTE

LTES = {name: config for name, config in POINTWISE.items() if isinstance(config, LTEConfig)}
CELLS = torch.cat([cell_of(1.7, 2.9), cell_of(3.3, 5.2)])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@settings(max_examples=5)
@given(chunk=st.integers(1, 40), seed=st.integers(0, 1000))
def test_prepare_in_chunks_equals_decode(config: ModelConfig, chunk: int, seed: int) -> None:
    model = random_rival(config, seed=seed)
    image, coords = random_image(5, 4, batch=2), random_coords(37, batch=2, seed=seed)
    with torch.no_grad():
        features = model.encoder(image)
        answer = model.prepare(features, image, CELLS)
        chunked = torch.cat([answer(part) for part in coords.split(chunk, dim=1)], dim=1)
        expected = model.decode(features, image, coords, CELLS)
    torch.testing.assert_close(chunked, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("config", LTES.values(), ids=LTES.keys())
@pytest.mark.parametrize("size", [(5, 4), (15, 12), (11, 7)], ids=str)
def test_lte_plus_in_strips_equals_lte_at_points(config: LTEConfig, size: tuple[int, int]) -> None:
    model = random_rival(config)
    assert isinstance(model, LTE)
    image = random_image(5, 4, batch=2)
    y, x = (pixel_centres(n) for n in size)
    with torch.no_grad():
        features = model.encoder(image)
        answer = model.prepare_maps(features, image, CELLS)
        maps = torch.cat([answer(rows, x) for rows in y.split(2)], dim=2)
        grid = torch.stack(torch.meshgrid(y, x, indexing="ij"), dim=-1).expand(2, -1, -1, -1)
        points = model.reference(image, grid, CELLS)
    torch.testing.assert_close(maps, points.permute(0, 3, 1, 2), rtol=0, atol=1e-10)


@pytest.mark.parametrize("config", POINTWISE.values(), ids=POINTWISE.keys())
def test_prepare_has_the_gradients_of_decode(config: ModelConfig) -> None:
    model = random_rival(config)
    image, coords = random_image(4, 5, batch=2), random_coords(20, batch=2)

    def gradients(*, fused: bool) -> list[torch.Tensor]:
        features = model.encoder(image)
        queries = (image, coords, CELLS)
        rgb = model.prepare(features, image, CELLS)(coords) if fused else model.decode(features, *queries)
        return list(torch.autograd.grad(rgb.square().sum(), list(model.parameters())))

    for ours, expected in zip(gradients(fused=True), gradients(fused=False), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("config", POINTWISE.values(), ids=POINTWISE.keys())
def test_half_precision_weights_keep_the_precision_of_coordinates(config: ModelConfig) -> None:
    """In bf16 the values are coarse, but every query uses the right pixels."""
    model = random_rival(config, dtype=torch.float32)
    image, coords = random_image(2, 900), random_coords(200)
    cell = cell_of(2.0, 2.0)
    with torch.no_grad():
        expected = model.reference(image.float(), coords, cell)
        half = model.bfloat16()
        features = half.encoder(image.bfloat16())
        for rgb in (
            half.decode(features, image.bfloat16(), coords, cell),
            half.prepare(features, image.bfloat16(), cell)(coords),
        ):
            assert rgb.dtype == torch.bfloat16
            share = (rgb.float() - expected).square().mean() / expected.var()
            assert share < 0.02
