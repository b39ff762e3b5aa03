"""Opened pictures: the samples of the file, parts of them as tensors, and their conversion to sRGB for the screen."""

import io
import threading
from dataclasses import dataclass, field

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from srno.imaging.alpha import bleed
from srno.imaging.icc import to_srgb
from srno.imaging.picture import Floats, Picture, Samples, from_float, to_float

BLEED_BYTES_PER_PIXEL = 48
"""Working memory of filling in the colours of transparent pixels: float32 copies of colour, weights and averages."""


@dataclass(frozen=True, eq=False)
class Opened:
    """A picture in memory."""

    id: str
    name: str
    picture: Picture
    file_bytes: int = 0
    """Size of the file that it was read from."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _filled: list[Samples] = field(default_factory=list[Samples], init=False)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height)"""
        return self.picture.size

    @property
    def pixels(self) -> int:
        return self.size[0] * self.size[1]

    @property
    def bytes(self) -> int:
        """Bytes in memory; with alpha the operator needs a second copy of the colours."""
        colour = self.picture.colour.nbytes
        return colour if self.picture.alpha is None else 2 * colour + self.picture.alpha.nbytes

    @property
    def is_filled(self) -> bool:
        """Whether `part` needs no further working memory."""
        return self.picture.alpha is None or bool(self._filled)

    def part(self, rows: slice, columns: slice) -> Tensor:
        """(3, rows, columns) in [-1, 1], as the operator takes it."""
        values = to_float(np.ascontiguousarray(self._visible()[rows, columns]))
        return torch.from_numpy(values).permute(2, 0, 1).expand(3, -1, -1) * 2 - 1

    def image(self, rgb: Tensor) -> Image.Image:
        """Convert the operator's output, (3, h, w) in [-1, 1], to 8-bit RGB in sRGB."""
        values: Floats = (rgb.permute(1, 2, 0).float() * 0.5 + 0.5).cpu().numpy()
        if self.picture.colour.shape[2] == 1:
            values = values.mean(axis=2, keepdims=True)
        return self.convert(values)

    def convert(self, values: Floats) -> Image.Image:
        """Convert colours (h, w, 1|3) in [0, 1] to 8-bit RGB in sRGB."""
        # The conversion from a profile is nonlinear, so its input needs more levels than its 8-bit output.
        return self.convert_samples(from_float(values, 8 if self.picture.icc is None else 16))

    def convert_samples(self, colour: Samples) -> Image.Image:
        """Convert samples (h, w, 1|3) to 8-bit RGB in sRGB."""
        colour = colour if self.picture.icc is None else to_srgb(colour, self.picture.icc)
        eight = Picture(colour=colour).with_bits(8).colour
        return Image.fromarray(np.repeat(eight, 3, axis=2) if eight.shape[2] == 1 else np.ascontiguousarray(eight))

    def _visible(self) -> Samples:
        """The colours, with those of transparent pixels filled in from around them."""
        if self.picture.alpha is None:
            return self.picture.colour
        with self._lock:
            if not self._filled:
                self._filled.append(bleed(self.picture.colour, self.picture.alpha))
        return self._filled[0]


def as_png(image: Image.Image) -> bytes:
    """Encode as PNG with fast, weak compression, since the browser usually runs on the same machine."""
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    return stream.getvalue()
