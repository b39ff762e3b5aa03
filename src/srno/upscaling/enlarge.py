"""Convert colour and alpha to the operator's input, and its output to samples.

The operator takes RGB only. Gray is repeated to three equal channels, and the result is the mean of the three; alpha is
enlarged as a gray picture. A side that becomes smaller is first reduced by a bicubic filter: the models are trained
only to enlarge. Where there is nothing to compute, samples are copied: if the size stays, and if there is one pixel.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from srno.errors import SRNOError
from srno.imaging.alpha import bleed
from srno.imaging.picture import Floats, Picture, from_float, to_float
from srno.imaging.resize import matlab_bicubic_float
from srno.machine import free_memory
from srno.progress import Progress, part_of
from srno.upscaling.sizes import Size, Target, rows_first
from srno.upscaling.upscaler import Upscaler

Array: TypeAlias = NDArray[Any]
Samples = TypeVar("Samples", bound=np.generic)

BAND_PIXELS = 1 << 20
"""Number of output pixels that are converted to samples at once, which bounds the temporary memory."""


def enlarge(
    colour: Array, alpha: Array | None, target: Target, upscaler: Upscaler, dtype: Any, progress: Progress | None = None
) -> tuple[Array, Array | None]:
    """Enlarge colour (h, w, 1|3) and alpha (h, w) to the size of `target`, as `dtype`.

    Integers of 8 or 16 bits are shares of their largest value, floats lie in [0, 1]; the result is clamped.
    """
    if target.whole != target.source:
        _check_memory(target, upscaler, colour.shape[2] + (alpha is not None), np.dtype(dtype))
    if _only_copied(target):
        if progress is not None:
            progress(1.0)
        return _copied(colour, target, dtype), None if alpha is None else _copied(alpha, target, dtype)
    if alpha is None:
        return _enlarge_colour(colour, target, upscaler, dtype, progress), None
    constant = alpha.min() == alpha.max()
    parts = 1 if constant or upscaler.alpha == "bicubic" else 2
    colour = _enlarge_colour(_bleed(colour, alpha), target, upscaler, dtype, part_of(progress, 0, parts))
    if constant:
        value = alpha[:1, :1] if alpha.dtype == dtype else _to_samples(_floats(alpha[:1, :1]), dtype)
        return colour, np.full(target.size[::-1], value)
    return colour, _enlarge_alpha(alpha, target, upscaler, dtype, part_of(progress, parts - 1, parts))


def enlarge_picture(
    picture: Picture, target: Target, upscaler: Upscaler, bits: int, progress: Progress | None = None
) -> Picture:
    """Enlarge a picture to the size of `target` with 8 or 16 bits; its metadata stays."""
    dtype = np.uint16 if bits == 16 else np.uint8
    suited = upscaler.for_picture(picture.compression)
    colour, alpha = enlarge(picture.colour, picture.alpha, target, suited, dtype, progress)
    return replace(picture, colour=colour, alpha=alpha)


def _copied(samples: Array, target: Target, dtype: Any) -> Array:
    """Crop samples (h, w, ...) of the new size, or repeat a single one, as `dtype`."""
    if target.source == (1, 1):
        samples = np.broadcast_to(samples, (*target.size[::-1], *samples.shape[2:]))
    else:
        samples = _cut(samples, target)
    if samples.dtype != dtype:
        return _to_samples(_floats(samples), dtype)
    return np.clip(samples, 0, 1) if samples.dtype.kind == "f" else np.array(samples)


def _enlarge_colour(colour: Array, target: Target, upscaler: Upscaler, dtype: Any, progress: Progress | None) -> Array:
    values = _reduced(_floats(colour), target.whole)
    if _only_reduced(target):
        return _to_samples(_cut(values, target), dtype)
    rgb = upscaler(_as_image(values), rows_first(target.whole), progress=progress)
    out = np.empty((*target.size[::-1], colour.shape[2]), dtype)
    for rows, band in _bands(rgb, target):
        out[rows] = _to_samples(band if colour.shape[2] == 3 else band.mean(axis=2, keepdims=True), dtype)
    return out


def _enlarge_alpha(alpha: Array, target: Target, upscaler: Upscaler, dtype: Any, progress: Progress | None) -> Array:
    """Enlarge alpha within the range of the nearest nine pixels, so that opaque and empty regions stay exact."""
    values = _reduced(_floats(alpha), target.whole)
    if _only_reduced(target):
        return _to_samples(_cut(values, target), dtype)
    low, high = _range_around(values)
    y, x = nearest_pixels(target, values.shape)
    if upscaler.alpha == "bicubic":
        smooth = _cut(matlab_bicubic_float(values, rows_first(target.whole)), target)
        return _to_samples(np.clip(smooth, low[np.ix_(y, x)], high[np.ix_(y, x)]), dtype)
    rgb = upscaler(_as_image(values[..., None]), rows_first(target.whole), progress=progress)
    out = np.empty(target.size[::-1], dtype)
    for rows, band in _bands(rgb, target):
        near = np.ix_(y[rows], x)
        out[rows] = _to_samples(np.clip(band.mean(axis=2), low[near], high[near]), dtype)
    return out


def nearest_pixels(target: Target, shape: tuple[int, int]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and column of the pixel in (h, w) that each row and column of the output lies in."""
    (height, width), (left, top) = shape, target.origin
    y = ((np.arange(target.size[1]) + top + 0.5) * height / target.whole[1]).astype(np.intp)
    x = ((np.arange(target.size[0]) + left + 0.5) * width / target.whole[0]).astype(np.intp)
    return y, x


def _as_image(values: Floats) -> Tensor:
    """Values (h, w, 1|3) in [0, 1] → the operator's input (3, h, w) in [-1, 1]."""
    return torch.from_numpy(values).permute(2, 0, 1).expand(3, -1, -1) * 2 - 1


def _bands(rgb: Tensor, target: Target) -> Iterator[tuple[slice, Floats]]:
    """Yield the output from (3, H, W) in [-1, 1] in bands of rows: (rows, width, 3) in [0, 1], not clamped."""
    (left, top), (width, height) = target.origin, target.size
    step = max(1, BAND_PIXELS // width)
    for first in range(0, height, step):
        last = min(first + step, height)
        band = rgb[:, top + first : top + last, left : left + width].permute(1, 2, 0)
        yield slice(first, last), (band.float() * 0.5 + 0.5).cpu().numpy()


def _floats(samples: Array) -> Floats:
    return samples.astype(np.float32) if samples.dtype.kind == "f" else to_float(samples)


def _to_samples(values: NDArray[np.floating], dtype: Any) -> Array:
    """Clip values to [0, 1] and convert to `dtype`."""
    kind = np.dtype(dtype)
    return np.clip(values, 0, 1).astype(kind) if kind.kind == "f" else from_float(values, kind.itemsize * 8)


def _bleed(colour: Array, alpha: Array) -> Array:
    """Apply `bleed` to floats too: 16 bits are enough for invisible pixels."""
    if colour.dtype.kind != "f":
        return bleed(colour, alpha)
    visible = np.maximum(from_float(_floats(alpha), 16), (alpha > 0).astype(np.uint16))
    filled = to_float(bleed(from_float(_floats(colour), 16), visible)).astype(colour.dtype)
    return np.where((alpha > 0)[..., None], colour, filled)


def _reduced(values: Floats, size: Size) -> Floats:
    """Reduce the sides of (h, w, ...) that are longer than `size`."""
    height, width = values.shape[:2]
    smaller = min(height, size[1]), min(width, size[0])
    return values if smaller == (height, width) else matlab_bicubic_float(values, smaller)


def uses_operator(target: Target) -> bool:
    """Whether the operator is evaluated: samples are not just copied or reduced."""
    return not _only_copied(target) and not _only_reduced(target)


def _only_copied(target: Target) -> bool:
    """Whether the size stays, or there is one pixel."""
    return target.whole == target.source or target.source == (1, 1)


def _only_reduced(target: Target) -> bool:
    """Whether no side grows and some side shrinks, so that the operator is not needed."""
    return target.whole != target.source and all(
        new <= old for new, old in zip(target.whole, target.source, strict=True)
    )


def _cut(values: NDArray[Samples], target: Target) -> NDArray[Samples]:
    """Crop the whole picture (H, W, ...) to the output."""
    (left, top), (width, height) = target.origin, target.size
    return values[top : top + height, left : left + width]


def _range_around(values: Floats) -> tuple[Floats, Floats]:
    """(h, w) → minimum and maximum of each pixel and its eight neighbours."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(values, 1, mode="edge"), (3, 3))
    return windows.min(axis=(2, 3)), windows.max(axis=(2, 3))


def _check_memory(target: Target, upscaler: Upscaler, channels: int, dtype: np.dtype[Any]) -> None:
    """Refuse an output that does not fit into memory: three fp32 numbers per pixel, and the samples."""
    if next(upscaler.operator.parameters()).device.type != "cpu":
        return
    needed = (2 if upscaler.ensemble else 1) * 12 * target.whole[0] * target.whole[1]
    needed += target.size[0] * target.size[1] * channels * dtype.itemsize
    free = free_memory()
    if needed > free:
        size = f"{target.size[0]}×{target.size[1]}"
        raise SRNOError(
            f"an output of {size} pixels takes {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; "
            "choose a smaller size"
        )
