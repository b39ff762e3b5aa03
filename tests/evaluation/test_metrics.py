"""The metrics against their definitions and, if the conventions agree, against scikit-image and torchmetrics."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from srno.evaluation.metrics import Channel, luma, psnr, score, ssim

CHANNELS: tuple[Channel, ...] = ("y", "rgb")


def pair(height: int = 40, width: int = 33, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A truth (h, w, 3) and a slightly wrong result, all within [0, 1]."""
    generator = np.random.default_rng(seed)
    hr = np.clip(0.5 + 0.2 * np.cumsum(generator.normal(size=(height, width, 3)), axis=1) / 3, 0, 1)
    return np.clip(hr + 0.05 * generator.normal(size=hr.shape), 0, 1), hr


@pytest.mark.parametrize("border", [(0, 0), (2, 3)])
def test_psnr_and_ssim_equal_scikit_image(border: tuple[int, int]) -> None:
    metrics = pytest.importorskip("skimage.metrics")
    sr, hr = pair()
    inner = (slice(border[0], 40 - border[0]), slice(border[1], 33 - border[1]))
    expected = metrics.peak_signal_noise_ratio(hr[inner], sr[inner], data_range=1)
    assert psnr(sr, hr, "rgb", border) == pytest.approx(expected, abs=1e-9)
    expected = metrics.peak_signal_noise_ratio(luma(hr[inner]), luma(sr[inner]), data_range=1)
    assert psnr(sr, hr, "y", border) == pytest.approx(expected, abs=1e-9)
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 1}
    expected = metrics.structural_similarity(luma(hr[inner]), luma(sr[inner]), **options)
    assert ssim(sr, hr, border) == pytest.approx(expected, abs=1e-9)


def test_psnr_and_ssim_equal_torchmetrics() -> None:
    torch = pytest.importorskip("torch")
    image = pytest.importorskip("torchmetrics.functional.image")
    sr, hr = pair()
    rgb = [torch.from_numpy(x).permute(2, 0, 1)[None] for x in (sr, hr)]
    expected = image.peak_signal_noise_ratio(*rgb, data_range=1.0)
    assert psnr(sr, hr, "rgb", (0, 0)) == pytest.approx(expected.item(), abs=1e-5)
    y = [torch.from_numpy(luma(x))[None, None] for x in (sr, hr)]
    # torchmetrics averages over a reflected border too; without it the map holds whole windows only, as ours.
    _, similarity = image.structural_similarity_index_measure(*y, data_range=1.0, sigma=1.5, return_full_image=True)
    assert ssim(sr, hr, (0, 0)) == pytest.approx(similarity[..., 5:-5, 5:-5].mean().item(), abs=1e-9)


def test_luma_is_close_to_scikit_image() -> None:
    color = pytest.importorskip("skimage.color")
    _, hr = pair()
    np.testing.assert_allclose(luma(hr) * 255, color.rgb2ycbcr(hr)[..., 0], atol=2e-3 * 255)


@given(difference=st.floats(1e-3, 0.5))
def test_a_constant_error_has_the_psnr_of_the_definition(difference: float) -> None:
    hr = np.zeros((12, 12))
    sr = np.full((12, 12), difference)
    assert psnr(sr, hr, "rgb", (0, 0)) == pytest.approx(-20 * math.log10(difference))
    weight = (65.738 + 129.057 + 25.064) / 256
    assert psnr(sr, hr, "y", (0, 0)) == pytest.approx(-20 * math.log10(difference * weight))


def test_psnr_on_y_cancels_opposite_errors() -> None:
    hr = np.full((12, 12, 3), 0.5)
    sr = hr + np.array([1 / 65.738, -1 / 129.057, 0])
    assert psnr(sr, hr, "y", (0, 0)) > 250
    assert psnr(sr, hr, "rgb", (0, 0)) < 50


@given(top=st.integers(0, 6), left=st.integers(0, 6), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_pixels_of_the_border_do_not_count(top: int, left: int, seed: int) -> None:
    sr, hr = pair(seed=seed)
    changed = sr.copy()
    changed[:top], changed[40 - top :], changed[:, :left], changed[:, 33 - left :] = 0, 1, 1, 0
    for channel in CHANNELS:
        assert score(changed, hr, channel, (top, left)) == score(sr, hr, channel, (top, left))
    changed[top, left] = 1 - changed[top, left]
    assert score(changed, hr, "rgb", (top, left)) != score(sr, hr, "rgb", (top, left))


@pytest.mark.parametrize("channel", CHANNELS)
def test_identical_pictures_have_infinite_psnr_and_ssim_one(channel: Channel) -> None:
    _, hr = pair()
    same = score(hr, hr, channel, (2, 2))
    assert same.psnr == math.inf
    assert same.ssim == pytest.approx(1)


def test_results_are_clamped_but_not_rounded() -> None:
    sr, hr = pair()
    outside = np.where(sr > 0.9, sr + 3, np.where(sr < 0.1, sr - 3, sr))
    clamped = np.where(sr > 0.9, 1, np.where(sr < 0.1, 0, sr))
    assert score(outside, hr, "y", (1, 1)) == score(clamped, hr, "y", (1, 1))
    assert psnr(hr + 1e-4, hr, "rgb", (0, 0)) < 100


def test_gray_is_expanded_to_rgb() -> None:
    sr, hr = (x[..., 0] for x in pair())
    expanded_sr, expanded_hr = (np.stack([x, x, x], axis=-1) for x in (sr, hr))
    for channel in CHANNELS:
        assert score(sr, hr, channel, (2, 2)) == score(expanded_sr, expanded_hr, channel, (2, 2))


def test_a_border_that_leaves_nothing_is_an_error() -> None:
    sr, hr = pair(12, 12)
    with pytest.raises(ValueError, match="leaves nothing"):
        psnr(sr, hr, "y", (6, 6))
    with pytest.raises(ValueError, match="SSIM needs 11"):
        ssim(sr, hr, (1, 1))
