"""Properties of every rival, for any weights."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rival_models import CONFIGS, FIXED, POINTWISE, random_rival

from small_models import EDSR, RDN, random_coords, random_image
from srno.checkpoints.build import create_model
from srno.config import PRESETS, FixedScaleConfig, LIIFConfig, ModelConfig, config_from_dict, config_to_dict
from srno.errors import SRNOError
from srno.operator.grid import cell_of, make_grid
from srno.operator.model import Model
from srno.rivals.fixed import FixedScale
from srno.rivals.metasr import MetaSR

ALL = PRESETS | CONFIGS
MODELS = [random_rival(config) for config in POINTWISE.values()]


@pytest.mark.parametrize("config", ALL.values(), ids=ALL.keys())
def test_a_config_survives_the_round_trip_through_plain_data(config: ModelConfig) -> None:
    assert config_from_dict(config_to_dict(config)) == config


@pytest.mark.parametrize("config", ALL.values(), ids=ALL.keys())
def test_create_model_builds_a_model_with_its_config(config: ModelConfig) -> None:
    with torch.device("meta"):
        model = create_model(config)
    assert isinstance(model, Model)
    assert model.config == config


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: LIIFConfig(depth=0), "depth"),
        (lambda: FixedScaleConfig(scale=5), "scale is 5"),
        (lambda: FixedScaleConfig(encoder=RDN, mean_shift=True), "mean_shift"),
    ],
)
def test_an_invalid_config_is_refused(make, word: str) -> None:
    with pytest.raises(SRNOError, match=word):
        make()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@settings(max_examples=5)
@given(seed=st.integers(0, 1000))
def test_queries_are_independent_of_each_other(config: ModelConfig, seed: int) -> None:
    """A subset of the queries in any order, and one picture of a batch, have the values of the whole batch."""
    model = random_rival(config, seed=seed)
    image, coords = random_image(4, 5, batch=2), random_coords(23, batch=2, seed=seed)
    cell = torch.cat([cell_of(1.7, 2.9), cell_of(3.3, 5.2)])
    some = torch.randperm(23, generator=torch.Generator().manual_seed(seed))[:11]
    with torch.no_grad():
        together = model(image, coords, cell)
        alone = model(image[1:], coords[1:, some], cell[1:])
    torch.testing.assert_close(alone, together[1:, some], rtol=0, atol=1e-12)


@pytest.mark.parametrize("config", FIXED.values(), ids=FIXED.keys())
def test_forward_on_its_grid_equals_the_fixed_scale_network(config: FixedScaleConfig) -> None:
    model = random_rival(config)
    assert isinstance(model, FixedScale)
    image = random_image(4, 5, batch=2)
    size = (4 * config.scale, 5 * config.scale)
    with torch.no_grad():
        picture = model.upscale(image)
        answer = model(image, make_grid(*size).expand(2, -1, -1, -1), cell_of(*[config.scale] * 2, batch=2))
    assert picture.shape == (2, 3, *size)
    torch.testing.assert_close(answer.permute(0, 3, 1, 2), picture, rtol=0, atol=1e-11)


def test_mean_shift_pads_with_the_mean_colour() -> None:
    """The features of a picture of the mean colour have no border."""
    model = random_rival(FixedScaleConfig(encoder=EDSR, mean_shift=True))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data.zero_()
    flat = model.encoder.get_buffer("mean").reshape(1, 3, 1, 1).expand(1, 3, 5, 6)
    assert model.encoder(flat).abs().max() == 0


@given(y=st.floats(1, 40), x=st.floats(1, 40))
def test_cell_clip_clamps_the_cell_at_scale_four(y: float, x: float) -> None:
    """A query up to ×4 is unchanged; beyond, only Meta-SR's coordinates move, to keep its corners."""
    coords, cell = random_coords(6), cell_of(y, x)
    for model in MODELS:
        moved, clipped = model.clip_cell(coords, cell, (4, 7))
        assert clipped.tolist() == [[2 / min(y, 4), 2 / min(x, 4)]]
        shift = (clipped - cell) / torch.tensor([4, 7]) / 2 if isinstance(model, MetaSR) else torch.zeros(1, 2)
        torch.testing.assert_close(moved, coords + shift.unsqueeze(1), rtol=0, atol=1e-12)
