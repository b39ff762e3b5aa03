"""A picture in memory: upright samples with the values of the file, and its metadata."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from srno.imaging.formats import Format

Samples: TypeAlias = npt.NDArray[np.uint8 | np.uint16]
Floats: TypeAlias = npt.NDArray[np.float32]
Codec: TypeAlias = Literal["jpeg", "webp", "avif", "heif"]


@dataclass(frozen=True)
class Compression:
    """Lossy compression of a picture."""

    codec: Codec
    level: float
    """JPEG: quality, 1 to 100, on the scale of the standard tables. Others: bits per pixel."""

    def __str__(self) -> str:
        if self.codec == "jpeg":
            return f"JPEG of quality {self.level:.0f}"
        return f"{self.codec.upper()} of {self.level:.2g} bits per pixel"


@dataclass(frozen=True)
class Text:
    """A text of a PNG file under its keyword, such as Title, Author or Comment."""

    keyword: str
    value: str
    language: str = ""
    translated_keyword: str = ""


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
    xmp: bytes | None = None
    """An XMP packet without properties that depend on the size or describe the stored samples."""
    iptc: bytes | None = None
    """IPTC-IIM datasets."""
    comments: tuple[bytes, ...] = ()
    """Comments of JPEG and GIF files, most often in UTF-8 or Latin-1."""
    texts: tuple[Text, ...] = ()
    """Texts of PNG files."""
    dpi: tuple[float, float] | None = None
    """Horizontal and vertical."""
    format: Format = "PNG"
    """Format of the file that it was read from."""
    compression: Compression | None = None
    """Lossy compression of that file; None if it is lossless or unknown."""
    notes: tuple[str, ...] = ()
    """One line for everything that reading the file changed or left out."""

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

    def crop(self, box: "PixelBox") -> "Picture":
        """Cut out a box."""
        left, top, right, bottom = box
        alpha = None if self.alpha is None else self.alpha[top:bottom, left:right]
        return replace(self, colour=self.colour[top:bottom, left:right], alpha=alpha)

    def with_bits(self, bits: int) -> "Picture":
        """Convert to 8 or 16 bits per channel, rounded to the nearest level."""
        if bits == self.bits:
            return self
        alpha = None if self.alpha is None else _rescale(self.alpha)
        return replace(self, colour=_rescale(self.colour), alpha=alpha)


def split_samples(samples: Samples) -> Picture:
    """Make a picture from (h, w, 1 … 4) samples: gray or RGB, with two and four channels also alpha."""
    colours = 1 if samples.shape[2] < 3 else 3
    alpha = samples[..., colours] if samples.shape[2] > colours else None
    return Picture(colour=samples[..., :colours], alpha=alpha)


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame of an animation, or a page."""

    picture: Picture
    duration: float = 0
    """Milliseconds."""


PixelBox: TypeAlias = tuple[int, int, int, int]
"""Left, top, right and bottom."""


def changed_box(before: Samples, after: Samples) -> PixelBox | None:
    """Return the smallest box outside of which two arrays (h, w) or (h, w, c) are equal; None if they are."""
    changed = before != after
    if changed.ndim == 3:
        changed = changed.any(axis=2)
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    if not len(rows):
        return None
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def to_float(samples: Samples) -> Floats:
    """Convert samples of 8 or 16 bits to float32 in [0, 1]."""
    return samples.astype(np.float32) / np.float32(np.iinfo(samples.dtype).max)


def from_float(values: npt.NDArray[np.floating], bits: int) -> Samples:
    """Clip values to [0, 1] and convert them to samples of 8 or 16 bits, halves rounded up."""
    dtype = np.uint16 if bits == 16 else np.uint8
    # The cast truncates towards zero, which is the floor here.
    return (np.clip(values, 0, 1) * np.iinfo(dtype).max + 0.5).astype(dtype)


def scale_to_16_bits(levels: Samples, bits: int) -> Samples:
    """Scale levels of 9 to 16 bits so that white, 2ᵇ - 1, becomes 65535."""
    top = 2**bits - 1
    return ((levels.astype(np.uint32) * 65535 + top // 2) // top).astype(np.uint16)


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
