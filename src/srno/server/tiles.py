"""Tiles: rectangles of a picture's pixels at one zoom level."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from PIL import Image

from srno.errors import SRNOError
from srno.field.field import Field
from srno.progress import Progress
from srno.server.opened import Opened, as_png

BICUBIC = "bicubic"
"""The source of pixels that is no model."""
QUADRATURE = 16384
"""Points of the kernel integral at one zoom level, about as many as training saw."""
LARGEST_ZOOM = 512
LARGEST_TILE = 2048 * 2048


Box: TypeAlias = tuple[float, float, float, float]
"""(left, top, right, bottom) in pixels of the picture."""


@dataclass(frozen=True)
class Tile:
    """Some pixels of a picture at a zoom level."""

    source: str
    """A model's name, or bicubic."""
    level: tuple[int, int]
    """(width, height) of the whole picture."""
    rect: tuple[int, int, int, int]
    """(left, top, width, height) in it."""

    def check(self, size: tuple[int, int]) -> None:
        """Raise unless it lies in the level, and the level within reason for a picture of `size`."""
        left, top, width, height = self.rect
        if not all(1 <= new <= LARGEST_ZOOM * old for new, old in zip(self.level, size, strict=True)):
            raise SRNOError(f"level {self.level[0]}×{self.level[1]}: between 1 pixel and ×{LARGEST_ZOOM}")
        if min(left, top) < 0 or min(width, height) < 1 or width * height > LARGEST_TILE:
            raise SRNOError(f"tile {self.rect}: at least 1 pixel and at most {LARGEST_TILE:,}")
        if left + width > self.level[0] or top + height > self.level[1]:
            raise SRNOError(f"tile {self.rect} is not inside the level {self.level[0]}×{self.level[1]}")

    def enlarges(self, size: tuple[int, int]) -> bool:
        """Whether there is anything for the operator to do: a smaller picture is the picture, filtered."""
        return self.source != BICUBIC and (self.level == size or self.level[0] > size[0] or self.level[1] > size[1])


def paint(opened: Opened, lifted: Field | None, tile: Tile, progress: Progress) -> bytes:
    """The tile as a PNG: bicubic without a lifted picture, and always so for alpha."""
    region, size = region_of(opened.size, tile.level, tile.rect), tile.rect[2:]
    if lifted is None:
        return as_png(_bicubic(opened.shown, region, size))
    progress(0.0)  # the integrals of a level may take a while; stop before them if nobody waits
    left, top, right, bottom = region
    shape = (size[1], size[0])
    rgb = lifted.render(shape, region=(top, left, bottom, right), integral=QUADRATURE, progress=progress)
    seen = opened.image(rgb)
    if opened.shown.mode == "RGBA":
        seen.putalpha(_bicubic(opened.shown, region, size).getchannel("A"))
    return as_png(seen)


def region_of(size: tuple[int, int], level: tuple[int, int], rect: tuple[int, int, int, int]) -> Box:
    """Pixels of a level as a box of the picture; sizes are (width, height)."""
    (left, top, width, height), x, y = rect, size[0] / level[0], size[1] / level[1]
    return left * x, top * y, min(size[0], (left + width) * x), min(size[1], (top + height) * y)


def _bicubic(image: Image.Image, region: Box, size: tuple[int, int]) -> Image.Image:
    """A region of an image at `size`, as Pillow resamples it."""
    left, top, right, bottom = region
    if (right - left, bottom - top) == size:  # at ×1 it is the picture, with the colours of what cannot be seen
        return image.crop((int(left), int(top), int(right), int(bottom)))
    shrink = [max(1.0, length / n) for length, n in zip((right - left, bottom - top), size, strict=True)]
    # Pillow keeps the region in single precision, so it is given small numbers: all that the kernel reaches, no more.
    reach = [math.ceil(2 * factor) + 1 for factor in shrink]
    x, y = max(0, int(left) - reach[0]), max(0, int(top) - reach[1])
    corner = min(image.width, math.ceil(right) + reach[0]), min(image.height, math.ceil(bottom) + reach[1])
    part = image.crop((x, y, *corner))
    box = left - x, top - y, right - x, bottom - y
    if max(shrink) > 1.001:
        return part.resize(size, Image.Resampling.BICUBIC, box=box)
    return _enlarged(part, box, size)


def _enlarged(image: Image.Image, box: Box, size: tuple[int, int]) -> Image.Image:
    """The same in floats: between two passes in whole numbers values are cut off, and tiles would not meet."""
    values = np.asarray(image, np.float32)
    alpha = values[..., 3:] / 255
    values = np.concatenate([values[..., :3] * alpha, values[..., 3:]], axis=2) if alpha.size else values
    bands = [Image.fromarray(np.ascontiguousarray(values[..., i])) for i in range(values.shape[2])]
    large = np.stack([np.asarray(band.resize(size, Image.Resampling.BICUBIC, box=box)) for band in bands], axis=2)
    if alpha.size:
        large[..., :3] *= 255 / np.clip(large[..., 3:], 0.5, 255)
    return Image.fromarray(np.rint(large.clip(0, 255)).astype(np.uint8))
