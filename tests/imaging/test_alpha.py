"""Colours under transparent pixels do not affect visible ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import noise

from srno.imaging.alpha import bleed, flatten


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3]), st.sampled_from([8, 16]), st.integers(0, 99))
@settings(max_examples=60)
def test_visible_pixels_are_unchanged_and_hidden_ones_are_in_their_range(
    h: int, w: int, c: int, bits: int, seed: int
) -> None:
    colour = noise(h, w, c, bits=bits, seed=seed)
    alpha = np.where(noise(h, w, seed=seed + 1) < 200, 0, noise(h, w, bits=bits, seed=seed)).astype(colour.dtype)
    bled = bleed(colour, alpha)
    assert bled.dtype == colour.dtype
    assert np.array_equal(bled[alpha > 0], colour[alpha > 0])
    if (alpha > 0).any() and (alpha == 0).any():
        visible = colour[alpha > 0].astype(int)
        assert (bled[alpha == 0] >= visible.min(0) - 1).all()
        assert (bled[alpha == 0] <= visible.max(0) + 1).all()


def test_all_visible_or_all_hidden_is_unchanged() -> None:
    colour = noise(6, 7, 3)
    assert bleed(colour, np.full((6, 7), 1, np.uint8)) is colour
    assert bleed(colour, np.zeros((6, 7), np.uint8)) is colour


def test_hidden_colours_have_no_effect() -> None:
    alpha = np.where(noise(50, 60, seed=1) < 128, 0, 255).astype(np.uint8)
    one, other = noise(50, 60, 3, seed=2), noise(50, 60, 3, seed=3)
    other[alpha > 0] = one[alpha > 0]
    assert np.array_equal(bleed(one, alpha), bleed(other, alpha))


def test_one_visible_pixel_fills_the_picture() -> None:
    colour = np.zeros((37, 53, 3), np.uint16)
    alpha = np.zeros((37, 53), np.uint16)
    colour[30, 2], alpha[30, 2] = (40_000, 5, 65_535), 9
    assert np.abs(bleed(colour, alpha).astype(int) - (40_000, 5, 65_535)).max() <= 1


def test_hidden_pixels_take_the_nearest_colour() -> None:
    """A red disc on the left and a blue one on the right: the black pixels around each take its colour."""
    y, x = np.mgrid[:64, :128]
    left, right = np.hypot(y - 32, x - 32) < 16, np.hypot(y - 32, x - 96) < 16
    colour = np.zeros((64, 128, 3), np.uint8)
    colour[left], colour[right] = (250, 0, 0), (0, 0, 250)
    bled = bleed(colour, np.where(left | right, 255, 0).astype(np.uint8))
    near_left, near_right = np.hypot(y - 32, x - 32) < 18, np.hypot(y - 32, x - 96) < 18
    assert bled[near_left][:, 0].min() > 200
    assert bled[near_right][:, 2].min() > 200


@pytest.mark.parametrize("bits", [8, 16])
def test_flatten_blends_over_white(bits: int) -> None:
    top = 2**bits - 1
    colour, alpha = noise(20, 30, 3, bits=bits), noise(20, 30, bits=bits, seed=1)
    alpha[0], alpha[1] = 0, top
    flat = flatten(colour, alpha)
    share = alpha[..., None] / top
    assert flat.dtype == colour.dtype
    assert np.abs(flat - (colour * share + top * (1 - share))).max() <= 0.5
    assert (flat[0] == top).all()
    assert np.array_equal(flat[1], colour[1])
