"""PSNR and SSIM with the conventions of the super-resolution literature.

Pictures are float arrays (h, w, 3) or gray (h, w) with values in [0, 1]; gray is expanded to RGB first, the result is
clamped to [0, 1] and not rounded. `border` is the number of rows and columns left out at each edge, (rows, columns).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Channel = Literal["y", "rgb"]

Y_WEIGHTS = np.array([65.738, 129.057, 25.064]) / 256
Y_OFFSET = 16 / 255
SSIM_WINDOW = 11
SSIM_SIGMA = 1.5
SSIM_C1 = 0.01**2
SSIM_C2 = 0.03**2


@dataclass(frozen=True)
class Score:
    """PSNR and SSIM of a result against the truth."""

    psnr: float
    """dB, infinite for identical pictures"""
    ssim: float


def score(sr: NDArray[np.floating], hr: NDArray[np.floating], channel: Channel, border: tuple[int, int]) -> Score:
    """PSNR on `channel` and SSIM on Y of the result `sr` against the truth `hr`, both (h, w, 3) or (h, w)."""
    return Score(psnr(sr, hr, channel, border), ssim(sr, hr, border))


def psnr(sr: NDArray[np.floating], hr: NDArray[np.floating], channel: Channel, border: tuple[int, int]) -> float:
    """Peak signal-to-noise ratio in dB for a peak of 1, over RGB or over Y of the difference."""
    difference = _prepare(sr, border) - _prepare(hr, border)
    error = difference @ Y_WEIGHTS if channel == "y" else difference
    mse = float(np.mean(np.square(error)))
    return math.inf if mse == 0 else -10 * math.log10(mse)


def ssim(sr: NDArray[np.floating], hr: NDArray[np.floating], border: tuple[int, int]) -> float:
    """Structural similarity of the Y channels: Gaussian window 11, σ 1.5, whole windows only, K1 0.01, K2 0.03."""
    x, y = luma(_prepare(sr, border)), luma(_prepare(hr, border))
    if min(x.shape) < SSIM_WINDOW:
        raise ValueError(
            f"SSIM needs {SSIM_WINDOW}×{SSIM_WINDOW} pixels within the border, got {x.shape[0]}×{x.shape[1]}"
        )
    # The formula needs the two variances only as their sum, so four blurred maps are enough.
    mean_x, mean_y, mean_squares, mean_product = _blur(np.stack([x, y, x * x + y * y, x * y]))
    product, squares = mean_x * mean_y, mean_x**2 + mean_y**2
    luminance = (2 * product + SSIM_C1) / (squares + SSIM_C1)
    structure = (2 * (mean_product - product) + SSIM_C2) / (mean_squares - squares + SSIM_C2)
    return float((luminance * structure).mean())


def luma(rgb: NDArray[np.floating]) -> NDArray[np.float64]:
    """Y of YCbCr (BT.601, studio range) as a share of 255: (h, w, 3) in [0, 1] → (h, w) in [16/255, 235/255]."""
    return Y_OFFSET + rgb @ Y_WEIGHTS


def _prepare(image: NDArray[np.floating], border: tuple[int, int]) -> NDArray[np.float64]:
    """Cut the border, expand gray to RGB, clamp: (h, w[, 3]) → (h - 2·rows, w - 2·columns, 3)."""
    (height, width), (rows, columns) = image.shape[:2], border
    inner = image[rows : height - rows, columns : width - columns]
    if inner.size == 0:
        raise ValueError(f"a border of {rows}×{columns} leaves nothing of a picture of {height}×{width}")
    rgb = inner if inner.ndim == 3 else np.repeat(inner[..., None], 3, axis=-1)
    return np.clip(rgb.astype(np.float64), 0, 1)


def _blur(maps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaussian means over whole windows: (n, h, w) → (n, h - 10, w - 10)."""
    offsets = np.arange(SSIM_WINDOW) - SSIM_WINDOW // 2
    weights = np.exp(-0.5 * (offsets / SSIM_SIGMA) ** 2)
    weights /= weights.sum()
    rows = sliding_window_view(maps, SSIM_WINDOW, axis=1) @ weights
    return sliding_window_view(rows, SSIM_WINDOW, axis=2) @ weights
