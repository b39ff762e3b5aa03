"""Self-ensemble: the mean of eight renders, independent of flips and rotations of the input."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from srno.field.ensemble import SYMMETRIES, render_picture
from srno.field.field import lift
from tiny_models import tiny_model

MODEL = tiny_model(strength=0.3)
TOLERANCE = 2e-5


def picture(height: int, width: int) -> Tensor:
    return torch.rand(3, height, width, generator=torch.Generator().manual_seed(height * 31 + width)) * 2 - 1


def test_the_eight_symmetries_differ_and_are_invertible():
    image = torch.arange(3 * 4 * 5).reshape(3, 4, 5)
    turned = [symmetry.apply(image) for symmetry in SYMMETRIES]
    assert len({(tuple(one.shape), tuple(one.flatten().tolist())) for one in turned}) == 8
    for symmetry, one in zip(SYMMETRIES, turned, strict=True):
        assert torch.equal(symmetry.undo(one), image)
        assert symmetry.size((4, 5)) == (one.shape[1], one.shape[2])


sides = st.integers(1, 9)


@settings(max_examples=25)
@given(sides, sides, st.integers(1, 30), st.integers(1, 30), st.sampled_from(SYMMETRIES))
def test_transforming_the_picture_transforms_the_result(height: int, width: int, out_w: int, out_h: int, symmetry):
    image, size = picture(height, width), (out_h, out_w)
    straight = render_picture(MODEL, image, size, ensemble=True)
    assert straight.shape == (3, out_h, out_w)
    turned = render_picture(MODEL, symmetry.apply(image), symmetry.size(size), ensemble=True)
    assert (turned - symmetry.apply(straight)).abs().max() < TOLERANCE


def test_the_ensemble_is_the_mean_of_eight_different_pictures():
    image, size = picture(7, 5), (26, 17)
    each = []
    for swap, down, across in product((0, 1), repeat=3):
        axes = [1] * down + [2] * across
        turned = (image.transpose(1, 2) if swap else image).flip(axes)
        large = lift(MODEL, turned).render((size[1], size[0]) if swap else size).flip(axes)
        each.append(large.transpose(1, 2) if swap else large)
    mean = torch.stack(each).mean(0)
    assert (render_picture(MODEL, image, size, ensemble=True) - mean).abs().max() < TOLERANCE
    assert (each[0] - mean).abs().max() > 0.01


def test_progress_rises_over_all_parts_to_one():
    shares: list[float] = []
    render_picture(MODEL, picture(6, 6), (80, 90), ensemble=True, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] < 1 / 8
    assert shares[-1] == 1
    assert len(shares) >= 16


def test_progress_can_cancel():
    def stop(share: float) -> None:
        if share > 0.3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        render_picture(MODEL, picture(6, 6), (80, 90), ensemble=True, progress=stop)
