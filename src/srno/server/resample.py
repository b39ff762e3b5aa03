"""Parts of a picture at another size without a model, for the screen: bicubic as in Pillow, and nearest neighbour.

Samples are resampled in the colours of the file and converted to sRGB afterwards: only what is shown is converted.
"""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from srno.imaging.picture import Floats, Picture, Samples, to_float
from srno.server.opened import Opened

Box: TypeAlias = tuple[float, float, float, float]
"""(left, top, right, bottom) in pixels of the picture."""


def bicubic(opened: Opened, region: Box, size: tuple[int, int]) -> Image.Image:
    """A region of a picture at `size`: RGB or RGBA, 8 bits, sRGB."""
    left, top, right, bottom = region
    if (right - left, bottom - top) == size:  # at ×1 a copy keeps the colour of transparent pixels
        return _shown(opened, _crop(opened.picture, int(left), int(top), int(right), int(bottom)))
    part, box = _around(opened.picture, region, size)
    if max((box[2] - box[0]) / size[0], (box[3] - box[1]) / size[1]) > 1.001:
        return _shown(opened, _reduced(part, box, size))
    return _enlarged(opened, part, box, size)


def bicubic_alpha(opened: Opened, region: Box, size: tuple[int, int]) -> Image.Image | None:
    """Alpha of a region at `size`, 8 bits; None if the picture is opaque."""
    values = alpha_values(opened, region, size)
    return None if values is None else Image.fromarray(np.rint(values * 255).astype(np.uint8))


def alpha_values(opened: Opened, region: Box, size: tuple[int, int]) -> Floats | None:
    """The same in [0, 1]."""
    alpha = opened.picture.alpha
    if alpha is None:
        return None
    part, box = _around(Picture(colour=alpha[..., None]), region, size)
    return _resize(to_float(part.colour)[..., 0], box, size).clip(0, 1)


def nearest(opened: Opened, region: Box, size: tuple[int, int]) -> Image.Image:
    """A region at `size`, every pixel that of the picture under its centre."""
    (left, top, right, bottom), (width, height) = region, size
    x, y = _centres(left, right, width, opened.size[0]), _centres(top, bottom, height, opened.size[1])
    picture = _crop(opened.picture, x[0], y[0], x[-1] + 1, y[-1] + 1)
    places = np.ix_(y - y[0], x - x[0])
    alpha = None if picture.alpha is None else picture.alpha[places]
    return _shown(opened, Picture(colour=picture.colour[places], alpha=alpha))


def _centres(start: float, stop: float, n: int, limit: int) -> NDArray[np.intp]:
    return (start + (np.arange(n) + 0.5) * ((stop - start) / n)).astype(np.intp).clip(0, limit - 1)


def _crop(picture: Picture, left: int, top: int, right: int, bottom: int) -> Picture:
    """Samples of a part; the profile is left out."""
    alpha = None if picture.alpha is None else picture.alpha[top:bottom, left:right]
    return Picture(colour=picture.colour[top:bottom, left:right], alpha=alpha)


def _around(picture: Picture, region: Box, size: tuple[int, int]) -> tuple[Picture, Box]:
    """The part of a picture that the kernel reaches, and the region in it.

    Pillow stores the box in single precision: a part keeps its numbers small.
    """
    left, top, right, bottom = region
    shrink = [max(1.0, length / n) for length, n in zip((right - left, bottom - top), size, strict=True)]
    margin = [math.ceil(2 * factor) + 1 for factor in shrink]
    x, y = max(0, int(left) - margin[0]), max(0, int(top) - margin[1])
    width, height = picture.size
    corner = min(width, math.ceil(right) + margin[0]), min(height, math.ceil(bottom) + margin[1])
    return _crop(picture, x, y, *corner), (left - x, top - y, right - x, bottom - y)


def _reduced(part: Picture, box: Box, size: tuple[int, int]) -> Picture:
    """Resize with integers of 8 bits; Pillow multiplies by alpha before it filters."""
    samples = part.with_bits(8).samples()
    image = Image.fromarray(samples[..., 0] if samples.shape[2] == 1 else samples)
    small = np.asarray(image.resize(size, Image.Resampling.BICUBIC, box=box)).reshape(size[1], size[0], -1)
    if part.alpha is None:
        return Picture(colour=small)
    return Picture(colour=small[..., :-1], alpha=small[..., -1])


def _enlarged(opened: Opened, part: Picture, box: Box, size: tuple[int, int]) -> Image.Image:
    """Resize in float32: with integers Pillow rounds and clips between its two passes, which makes seams."""
    colour, alpha = to_float(part.colour), None if part.alpha is None else to_float(part.alpha)
    if alpha is not None:
        colour = colour * alpha[..., None]
    large = np.stack([_resize(colour[..., i], box, size) for i in range(colour.shape[2])], axis=2)
    if alpha is None:
        return opened.convert(large)
    opaque = _resize(alpha, box, size)
    image = opened.convert(large / np.clip(opaque[..., None], 0.5 / 255, 1))
    image.putalpha(Image.fromarray(np.rint(opaque.clip(0, 1) * 255).astype(np.uint8)))
    return image


def _resize(values: Floats, box: Box, size: tuple[int, int]) -> Floats:
    """(h, w) → (height, width) of `size`."""
    image = Image.fromarray(np.ascontiguousarray(values))
    return np.asarray(image.resize(size, Image.Resampling.BICUBIC, box=box))


def _shown(opened: Opened, picture: Picture) -> Image.Image:
    """Samples of the picture's colour space as RGB or RGBA of 8 bits in sRGB."""
    image = opened.convert_samples(picture.colour)
    if picture.alpha is not None:
        image.putalpha(Image.fromarray(_eight_bits(picture.alpha)))
    return image


def _eight_bits(alpha: Samples) -> Samples:
    return np.ascontiguousarray(Picture(colour=alpha[..., None]).with_bits(8).colour[..., 0])
