"""Profiles and conversion to sRGB."""

import io
from typing import Any

import numpy as np
import pytest
from making import CMYK, P3, SRGB, gray_profile, noise, rgb_profile
from PIL import ImageCms

from srno.imaging import icc as profile


def encoded(linear: np.ndarray) -> np.ndarray:
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def test_the_kind_of_samples_of_a_profile() -> None:
    kinds = {P3: "RGB", SRGB: "RGB", CMYK: "CMYK", gray_profile(2.2): "GRAY"}
    for icc, space in kinds.items():
        assert profile.space(icc) == space
    for icc in (None, b"", b"x" * 500, P3[:128]):
        assert profile.space(icc) is None


@pytest.mark.parametrize("gamma", [1.0, 1.8, 2.2])
@pytest.mark.parametrize("bits", [8, 16])
def test_gray_follows_its_curve(gamma: float, bits: int) -> None:
    top = 2**bits - 1
    levels = np.arange(0, top + 1, dtype=np.uint16 if bits == 16 else np.uint8)
    exact = encoded((levels / top) ** (round(gamma * 256) / 256)) * top
    moved = profile.to_srgb(levels.reshape(1, -1, 1), gray_profile(gamma))
    assert moved.shape == (1, top + 1, 1)
    assert moved.dtype == levels.dtype
    assert np.abs(moved.reshape(-1) - exact).max() <= (0.6 if bits == 8 else 400)


def test_colours_in_srgb_are_unchanged() -> None:
    colour = noise(9, 14, 3)
    assert profile.to_srgb(colour, SRGB) is colour
    gray = profile.gray_of(SRGB)
    assert gray is not None
    assert profile.to_srgb(colour[..., :1], gray) is not None
    assert np.array_equal(profile.to_srgb(colour[..., :1], gray), colour[..., :1])


@pytest.mark.parametrize("icc", [P3[:200], rgb_profile(1.8, 1.8, 1.8)[:200], P3[:132] + bytes(300)])
def test_a_broken_profile_leaves_the_colours_unchanged(icc: bytes) -> None:
    colour = noise(9, 14, 3)
    assert np.array_equal(profile.to_srgb(colour, icc), colour)
    assert profile.gray_of(icc) is None


def test_the_derived_gray_profile_is_valid() -> None:
    for icc in (P3, SRGB, rgb_profile(1.8, 1.8, 1.8)):
        gray = profile.gray_of(icc)
        assert gray is not None
        opened: Any = ImageCms.ImageCmsProfile(io.BytesIO(gray)).profile
        assert opened.xcolor_space.strip() == "GRAY"
        assert opened.is_matrix_shaper or opened.profile_description is not None
    assert profile.gray_of(rgb_profile(1.8, 2.2, 1.8)) is None
    assert profile.gray_of(CMYK) is None


def test_equal_channels_are_gray_unless_a_profile_needs_three() -> None:
    gray = np.repeat(noise(9, 14, 1), 3, axis=2)
    assert profile.collapse_gray(gray, None).shape == (9, 14, 1)
    assert profile.collapse_gray(gray, gray_profile(2.2)).shape == (9, 14, 1)
    assert profile.collapse_gray(gray, P3).shape == (9, 14, 1)  # its gray profile has the same tone curve
    assert profile.collapse_gray(gray, rgb_profile(1.8, 2.2, 1.8)) is gray
    assert profile.collapse_gray(noise(9, 14, 3), None).shape == (9, 14, 3)
