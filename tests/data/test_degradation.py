"""Degradations: functions of the sample's random numbers, within their ranges."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from srno.data.degradation import DEGRADATIONS, PhotoSettings, bicubic, photo
from srno.errors import SRNOError

NOTHING = PhotoSettings(jpeg_share=0, blur=0, noise=0)


def crop(side: int, seed: int = 0) -> np.ndarray:
    """A smooth picture with an edge."""
    y, x = np.mgrid[:side, :side] / side
    values = 90 + 60 * np.sin(7 * x + seed) * np.cos(5 * y) + 60 * (x + y > 1)
    return np.repeat(np.rint(values.clip(0, 255)).astype(np.uint8)[..., None], 3, axis=2)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 60), st.floats(1, 4), st.sampled_from(sorted(DEGRADATIONS)))
def test_shape_and_dependence_on_the_generator_alone(seed: int, side: int, scale: float, name: str):
    hr = crop(max(side, round(side * scale)))
    one, again = (DEGRADATIONS[name](hr, side, np.random.default_rng(seed), PhotoSettings()) for _ in range(2))
    assert one.shape == (side, side, 3)
    assert one.dtype == np.uint8
    np.testing.assert_array_equal(one, again)


def test_without_degradations_only_the_filter_varies():
    hr, found = crop(96), set()
    for seed in range(20):
        found.add(photo(hr, 48, np.random.default_rng(seed), NOTHING).tobytes())
    assert bicubic(hr, 48, np.random.default_rng(0), NOTHING).tobytes() in found
    assert len(found) == 3


def test_a_lower_quality_is_further_from_the_clean_picture():
    hr = crop(192)
    clean = bicubic(hr, 96, np.random.default_rng(0), NOTHING).astype(float)
    errors = []
    for quality in (20, 60, 95):
        only_jpeg = PhotoSettings(jpeg_min=quality, jpeg_max=quality, jpeg_share=1, jpeg_twice=0, blur=0, noise=0)
        drawn = [photo(hr, 96, np.random.default_rng(seed), only_jpeg) for seed in range(12)]
        errors.append(np.mean([np.abs(lr - clean).mean() for lr in drawn]))
    assert errors[0] > errors[1] > errors[2] > 0


def test_the_block_grid_has_any_offset():
    """Of a flat picture with one bright pixel, what JPEG leaves around it ends at the edges of a block."""
    hr = np.full((64, 64, 3), 90, np.uint8)
    hr[30:32, 30:32] = 255
    only_jpeg = PhotoSettings(jpeg_min=30, jpeg_max=30, jpeg_share=1, jpeg_twice=0, blur=0, noise=0)
    edges = set()
    for seed in range(60):
        lr = photo(hr, 64, np.random.default_rng(seed), only_jpeg).astype(int)
        rows = np.flatnonzero((np.abs(lr - 90).max(axis=2) > 3).any(axis=1))
        edges.add(int(rows.min()) % 8)
    assert len(edges) == 8


def test_noise_grows_with_the_brightness_and_keeps_the_mean():
    only_noise = PhotoSettings(jpeg_share=0, blur=0, noise=6)
    deviations = {}
    for level in (60, 200):
        hr = np.full((128, 128, 3), level, np.uint8)
        noisy = np.stack([photo(hr, 64, np.random.default_rng(seed), only_noise) for seed in range(40)]).astype(float)
        assert abs(noisy.mean() - level) < 0.1
        deviations[level] = noisy.std()
    assert 0.5 < deviations[60] < deviations[200] < 6


def test_the_first_compression_equals_pillow():
    hr = crop(48)
    only_jpeg = PhotoSettings(jpeg_min=50, jpeg_max=50, jpeg_share=1, jpeg_twice=0, blur=0, noise=0)
    found = False
    for seed in range(400):
        lr = photo(hr, 48, np.random.default_rng(seed), only_jpeg)
        for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
            stream = io.BytesIO()
            Image.fromarray(hr).save(stream, "JPEG", quality=50, subsampling=subsampling)
            found |= np.array_equal(lr, np.asarray(Image.open(stream)))
    assert found  # one offset in 256 leaves the grid where it is


@pytest.mark.parametrize(
    "wrong", [{"jpeg_min": 0}, {"jpeg_min": 80, "jpeg_max": 40}, {"jpeg_twice": 2}, {"noise": -1}, {"jpeg_share": -0.1}]
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]):
    with pytest.raises(SRNOError, match=next(iter(wrong))):
        PhotoSettings(**wrong)
