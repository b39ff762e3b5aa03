"""Pictures that were opened on the page: as their files had them, and as a screen shows them."""

import io
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from srno.imaging.alpha import bleed
from srno.imaging.icc import to_srgb
from srno.imaging.picture import Floats, Picture, Samples, from_float, to_float


@dataclass(frozen=True, eq=False)
class Opened:
    """A picture in memory."""

    id: str
    name: str
    picture: Picture

    @property
    def size(self) -> tuple[int, int]:
        """(width, height)"""
        return self.picture.size

    @property
    def bytes(self) -> int:
        """Memory that it takes, with what a screen shows of it."""
        return self.size[0] * self.size[1] * (self.picture.channels * self.picture.bits // 8 + 4)

    @cached_property
    def shown(self) -> Image.Image:
        """RGB or RGBA of 8 bits in sRGB."""
        image = self._image(self.picture.colour)
        if self.picture.alpha is not None:
            image.putalpha(Image.fromarray(Picture(colour=self.picture.alpha[..., None]).with_bits(8).colour[..., 0]))
        return image

    def tensor(self) -> Tensor:
        """(3, h, w) in [-1, 1], as the operator takes it."""
        colour, alpha = self.picture.colour, self.picture.alpha
        values = to_float(colour if alpha is None else bleed(colour, alpha))
        return torch.from_numpy(values).permute(2, 0, 1).expand(3, -1, -1) * 2 - 1

    def image(self, rgb: Tensor) -> Image.Image:
        """What the operator gave for a part of it, (3, h, w) in [-1, 1], as RGB of 8 bits in sRGB."""
        values: Floats = (rgb.permute(1, 2, 0).float() * 0.5 + 0.5).cpu().numpy()
        if self.picture.colour.shape[2] == 1:
            values = values.mean(axis=2, keepdims=True)
        # A profile bends the scale of levels, so there have to be more of them before it than after.
        return self._image(from_float(values, 8 if self.picture.icc is None else 16))

    def _image(self, colour: Samples) -> Image.Image:
        colour = colour if self.picture.icc is None else to_srgb(colour, self.picture.icc)
        eight = Picture(colour=colour).with_bits(8).colour
        return Image.fromarray(np.repeat(eight, 3, axis=2) if eight.shape[2] == 1 else np.ascontiguousarray(eight))


def as_png(image: Image.Image) -> bytes:
    """With little effort at compression, since it goes no further than to the next window."""
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    return stream.getvalue()
