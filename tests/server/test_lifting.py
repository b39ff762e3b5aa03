"""Lifting with progress changes nothing about the picture, and a window costs no more than its size."""

import pytest
import torch

from small_models import CONFIGS, random_image, random_model
from srno.server.lifting import cut_out, lift
from srno.server.workers import StoppedError


@pytest.fixture(params=["edsr", "edsr-nearest", "rdn"])
def model(request):
    return random_model(CONFIGS[request.param], dtype=torch.float32)


def test_progress_rises_to_one_and_the_field_is_the_same(model):
    image, shares = random_image(20, 30)[0].float(), []
    lifted = lift(model, image, shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1
    assert torch.equal(lifted.field.features, model.lift(image).features)
    assert lifted.field.model is model


def test_lifting_can_be_called_off(model):
    def stop(share: float) -> None:
        if share > 0.3:
            raise StoppedError

    with pytest.raises(StoppedError):
        lift(model, random_image(12, 12)[0].float(), stop)


@pytest.mark.parametrize("region", [(0, 0, 9.5, 7), (3.25, 8.5, 11.75, 15), (20.5, 0, 30, 20), (0, 0, 30, 20)])
def test_a_cut_out_field_gives_the_same_pixels(model, region):
    field = model.lift(random_image(20, 30)[0].float())
    integrals = field.integrate((120, 80), integral=500)
    size = round((region[2] - region[0]) * 4), round((region[3] - region[1]) * 4)
    expected = field.render(size, region=region, integrals=integrals)
    part, inside = cut_out(field, region)
    assert torch.allclose(part.render(size, region=inside, integrals=integrals), expected, atol=1e-5)


def test_a_cut_out_field_is_small(model):
    field = model.lift(random_image(60, 80)[0].float())
    part, _ = cut_out(field, (40, 30, 42, 31))
    assert part.features.shape[0] * part.features.shape[1] <= 100


def test_the_integral_of_a_level_is_computed_once(model):
    lifted = lift(model, random_image(10, 10)[0].float(), lambda _: None)
    first = lifted.integrals((40, 40))
    lifted.render((40, 40), (0, 0, 10, 10), lambda _: None)
    assert lifted.integrals((40, 40)) is first
    assert lifted.integrals((80, 80)) is not first
