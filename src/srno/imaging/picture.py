"""A picture in memory: upright samples with the values of the file, and its metadata."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from srno.imaging.formats import Format

Samples: TypeAlias = npt.NDArray[np.uint8 | np.uint16]
Floats: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Picture:
    """Gray or RGB samples of 8 or 16 bits in the colour space of `icc`, or in sRGB if that is None."""

    colour: Samples
    """(h, w, 1) gray or (h, w, 3) RGB, not multiplied by alpha."""
    alpha: Samples | None = None
    """(h, w) of the same dtype; None is opaque."""
    icc: bytes | None = None
    """Profile of `colour`: a gray one with gray samples, an RGB one with RGB samples."""
    exif: bytes | None = None
    """A TIFF-structured block without the "Exif" prefix, without entries that depend on the size."""
    dpi: tuple[float, float] | None = None
    """Horizontal and vertical."""
    format: Format = "PNG"
    """Format of the file that it was read from."""

    def __post_init__(self) -> None:
        if self.colour.ndim != 3 or self.colour.shape[2] not in (1, 3) or 0 in self.colour.shape:
            raise ValueError(f"colour has the shape {self.colour.shape}, not (h, w, 1) or (h, w, 3)")
        if self.colour.dtype.name not in ("uint8", "uint16"):
            raise ValueError(f"colour is {self.colour.dtype}, not uint8 or uint16")
        if self.alpha is not None and (self.alpha.shape, self.alpha.dtype) != (
            self.colour.shape[:2],
            self.colour.dtype,
        ):
            raise ValueError(
                f"alpha is {self.alpha.dtype} {self.alpha.shape}, colour {self.colour.dtype} {self.colour.shape}"
            )

    @property
    def size(self) -> tuple[int, int]:
        """(width, height)."""
        return self.colour.shape[1], self.colour.shape[0]

    @property
    def bits(self) -> int:
        """Bits per channel: 8 or 16."""
        return self.colour.dtype.itemsize * 8

    @property
    def channels(self) -> int:
        """1 gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha."""
        return self.colour.shape[2] + (self.alpha is not None)

    def samples(self) -> Samples:
        """(h, w, channels): colour and, if there is one, alpha as the last channel."""
        if self.alpha is None:
            return np.ascontiguousarray(self.colour)
        return np.concatenate([self.colour, self.alpha[..., None]], axis=2)

    def with_bits(self, bits: int) -> "Picture":
        """Convert to 8 or 16 bits per channel, rounded to the nearest level."""
        if bits == self.bits:
            return self
        alpha = None if self.alpha is None else _rescale(self.alpha)
        return replace(self, colour=_rescale(self.colour), alpha=alpha)


def to_float(samples: Samples) -> Floats:
    """Convert samples of 8 or 16 bits to float32 in [0, 1]."""
    return samples.astype(np.float32) / np.float32(np.iinfo(samples.dtype).max)


def from_float(values: npt.NDArray[np.floating], bits: int) -> Samples:
    """Clip values to [0, 1] and convert them to samples of 8 or 16 bits, halves rounded up."""
    dtype = np.uint16 if bits == 16 else np.uint8
    # The cast truncates towards zero, which is the floor here.
    return (np.clip(values, 0, 1) * np.iinfo(dtype).max + 0.5).astype(dtype)


def plausible_dpi(dpi: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the resolution if every format can store it, else None: headers contain any values."""
    if dpi is None or not all(1 <= value <= 65_535 for value in dpi):
        return None
    return float(dpi[0]), float(dpi[1])


def _rescale(samples: Samples) -> Samples:
    """8 bits to 16 or back: 65535 = 257 · 255."""
    if samples.dtype == np.uint8:
        return samples.astype(np.uint16) * np.uint16(257)
    return ((samples.astype(np.uint32) + 128) // 257).astype(np.uint8)
