"""Lifting: progress does not change the field, and invalid pictures are refused."""

import numpy as np
import pytest
import torch

from small_models import CONFIGS, random_image, random_model
from srno.errors import SRNOError
from srno.field.field import lift


@pytest.fixture(params=["edsr", "edsr-nearest", "rdn"])
def model(request):
    return random_model(CONFIGS[request.param], dtype=torch.float32)


def test_progress_rises_to_one_and_the_field_is_the_same(model, monkeypatch):
    monkeypatch.setattr("srno.field.encode.SMALL_PIXELS", 0)
    image, shares = random_image(20, 30)[0].float(), []
    field = lift(model, image, progress=shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1
    assert torch.equal(field.features, lift(model, image).features)
    assert field.model is model


def test_lifting_can_be_cancelled(model):
    def stop(share: float) -> None:
        if share > 0.3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        lift(model, random_image(12, 12)[0].float(), progress=stop)


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((3, 4, 4), np.float32), "ndarray"),
        (torch.zeros(4, 4), "shape"),
        (torch.zeros(2, 3, 4, 4), "shape"),
        (torch.zeros(3, 0, 4), "not empty"),
        (torch.zeros(3, 4, 4, dtype=torch.uint8), "uint8"),
        (torch.full((3, 4, 4), 200.0), "200"),
        (torch.full((3, 4, 4), torch.nan), "nan"),
    ],
)
def test_an_invalid_picture_is_refused(image, words):
    with pytest.raises(SRNOError, match=words):
        lift(random_model(CONFIGS["edsr"], dtype=torch.float32), image)


def test_the_repr_of_a_field_is_one_line(model):
    text = repr(lift(model, torch.zeros(3, 5, 7)))
    assert "5×7 pixels" in text
    assert "\n" not in text
