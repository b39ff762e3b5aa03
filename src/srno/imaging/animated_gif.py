"""Animated GIF: one palette for all frames; a frame holds only the box that changed. Pillow compresses the indices."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from srno.imaging.picture import Frame, Picture, PixelBox, Samples, changed_box

_KEEP, _CLEAR = 1, 2
"""What happens to a frame before the next one is drawn."""
_MAX_DELAY = 65_535

TRANSPARENT = 255
"""Index of transparent pixels."""
MAX_COLOURS = 255

_SAMPLED_PIXELS = 1 << 18
"""Pixels of all frames together from which the palette is made."""
_MAX_EXACT_COLOURS = 96
"""Colours of a drawing that the palette keeps exactly; the rest is for the blends between them."""
_MAX_SPREAD = 48
"""Levels between the darkest and the brightest threshold of the dithering."""


@dataclass(frozen=True, eq=False)
class Palette:
    """Colours, and how far the dithering may shift a pixel."""

    colours: NDArray[np.uint8]
    """(n, 3) with n ≤ 255."""
    spread: float
    notes: tuple[str, ...] = ()

    def indices(self, picture: Picture) -> NDArray[np.uint8]:
        """Return the index of each pixel, (h, w); TRANSPARENT if it is less than half opaque."""
        colour = _rgb(picture.colour)
        height, width = colour.shape[:2]
        thresholds = np.tile(_THRESHOLDS, (height // 8 + 1, width // 8 + 1))[:height, :width, None]
        shifted = np.clip(colour + np.rint(thresholds * self.spread).astype(np.int16), 0, 255).astype(np.uint8)
        found = np.asarray(Image.fromarray(shifted).quantize(palette=self._image(), dither=Image.Dither.NONE))
        found = self._exact(colour, found)
        return found if picture.alpha is None else np.where(picture.alpha < 128, np.uint8(TRANSPARENT), found)

    def _exact(self, colour: NDArray[np.uint8], found: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Do not dither colours that the palette has: a flat region stays flat."""
        own, pixels = _packed(self.colours), _packed(colour)
        order = np.argsort(own)
        at = order[np.minimum(np.searchsorted(own, pixels, sorter=order), len(own) - 1)]
        return np.where(own[at] == pixels, at.astype(np.uint8), found)

    def _image(self) -> Image.Image:
        # Repeated colours at the end are never chosen before the first of their kind.
        filled = np.concatenate([self.colours, np.repeat(self.colours[-1:], 256 - len(self.colours), axis=0)])
        image = Image.new("P", (1, 1))
        image.putpalette(filled.tobytes())
        return image


def make_palette(pictures: Iterable[Picture], count: int) -> Palette:
    """Make a palette for `count` pictures and their enlargements, of 8 bits per channel."""
    share = max(1, _SAMPLED_PIXELS // count)
    exact: NDArray[np.uint32] = np.empty(0, np.uint32)
    parts: list[NDArray[np.uint8]] = []
    for picture in pictures:
        colour = _rgb(picture.colour)
        visible = colour.reshape(-1, 3) if picture.alpha is None else colour[picture.alpha >= 128]
        exact = np.unique(np.concatenate([exact, _packed(_sample(visible, _SAMPLED_PIXELS))]))[: _MAX_EXACT_COLOURS + 1]
        parts += [_sample(visible, share // 2), _sample(_blends(colour), share // 2)]
    sampled = np.concatenate(parts)
    kept = _unpacked(exact) if len(exact) <= _MAX_EXACT_COLOURS else np.empty((0, 3), np.uint8)
    colours = np.concatenate([kept, _quantized(sampled, MAX_COLOURS - len(kept))])
    colours = _unpacked(np.unique(_packed(colours)))
    many = len(np.unique(_packed(sampled))) > len(colours)
    return Palette(colours, _spread(colours), (f"colours reduced to {MAX_COLOURS}: GIF cannot hold more",) * many)


def _bayer(size: int) -> NDArray[np.float64]:
    """(size, size) of the numbers 0 … size² - 1, neighbours far apart."""
    if size == 1:
        return np.zeros((1, 1))
    quarter = 4 * _bayer(size // 2)
    return np.block([[quarter, quarter + 2], [quarter + 3, quarter + 1]])


_THRESHOLDS = (_bayer(8) + 0.5) / 64 - 0.5
"""(8, 8) between -½ and ½."""


def _spread(colours: NDArray[np.uint8]) -> float:
    """Return the usual distance between neighbouring colours, which the dithering has to bridge."""
    if len(colours) < 2:
        return 0
    points = colours.astype(np.float32)
    distances = np.abs(points[:, None] - points[None]).max(axis=2)
    np.fill_diagonal(distances, np.inf)
    return float(min(np.median(distances.min(axis=1)), _MAX_SPREAD))


def _quantized(colours: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    image = Image.fromarray(colours[None]).quantize(count, Image.Quantize.MEDIANCUT, kmeans=1)
    return np.array(image.getpalette(), np.uint8).reshape(-1, 3)[np.unique(np.asarray(image))]


def _blends(colour: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return colours between those of neighbouring pixels, which an enlargement has."""
    height, width = colour.shape[:2]
    return np.asarray(Image.fromarray(colour).resize((2 * width, 2 * height), Image.Resampling.BICUBIC)).reshape(-1, 3)


def _sample(colours: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    # A copy: a view would keep the whole frame in memory.
    return colours[:: max(1, -(-len(colours) // max(count, 1)))].copy()


def _rgb(colour: Samples) -> NDArray[np.uint8]:
    return np.ascontiguousarray(np.repeat(colour, 3, axis=2) if colour.shape[2] == 1 else colour).astype(np.uint8)


def _packed(colours: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """(…, 3) → (…), one number per colour."""
    return colours.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)


def _unpacked(numbers: NDArray[np.uint32]) -> NDArray[np.uint8]:
    return np.stack([numbers >> 16, numbers >> 8 & 255, numbers & 255], axis=-1).astype(np.uint8)


def write_gif(frames: Iterable[Frame], stream: BinaryIO, plays: int, palette: Palette) -> None:
    """Write frames of one size; the metadata is that of the first."""
    shown = 0.0
    before: NDArray[np.uint8] | None = None
    for frame in frames:
        if before is None:
            _write_header(frame, stream, plays, palette)
        # Rounded to 1/100 s after summing, so that errors do not add up.
        delay = round((shown + frame.duration) / 10) - round(shown / 10)
        shown += frame.duration
        indices = palette.indices(frame.picture)
        transparent = frame.picture.alpha is not None
        height, width = indices.shape
        box = (0, 0, width, height)
        if before is not None and not transparent:
            # A file must hold at least one pixel of each frame.
            box = changed_box(before, indices) or (0, 0, 1, 1)
        _write_frame(indices, box, min(delay, _MAX_DELAY), transparent, stream)
        before = indices
    stream.write(b";")


def _write_header(frame: Frame, stream: BinaryIO, plays: int, palette: Palette) -> None:
    stream.write(b"GIF89a" + struct.pack("<HHBBB", *frame.picture.size, 0xF7, 0, 0))
    stream.write(palette.colours.tobytes().ljust(768, b"\0"))
    if plays != 1:
        repeats = min(max(plays - 1, 0), _MAX_DELAY)
        stream.write(b"!\xff\x0bNETSCAPE2.0\x03\x01" + struct.pack("<H", repeats) + b"\0")
    for comment in frame.picture.comments:
        stream.write(b"!\xfe" + b"".join(_sub_blocks(comment)) + b"\0")


def _write_frame(indices: NDArray[np.uint8], box: PixelBox, delay: int, transparent: bool, stream: BinaryIO) -> None:
    left, top, right, bottom = box
    flags = (_CLEAR if transparent else _KEEP) << 2 | transparent
    stream.write(b"!\xf9\x04" + struct.pack("<BHB", flags, delay, TRANSPARENT) + b"\0")
    stream.write(b"," + struct.pack("<HHHHB", left, top, right - left, bottom - top, 0))
    stream.write(_compressed(indices[top:bottom, left:right]))


def _compressed(indices: NDArray[np.uint8]) -> bytes:
    """Return the compressed indices as a file stores them, taken from one that Pillow writes."""
    image = Image.fromarray(np.ascontiguousarray(indices))
    image.putpalette(bytes(range(256)) * 3)
    buffer = BytesIO()
    image.save(buffer, "GIF", interlace=False, optimize=False)
    data = buffer.getvalue()
    at = 13 + (3 << (data[10] & 7) + 1 if data[10] & 0x80 else 0)
    while data[at] == ord("!"):
        at = _end_of_blocks(data, at + 2)
    local = data[at + 9]
    return data[at + 10 + (3 << (local & 7) + 1 if local & 0x80 else 0) : -1]


def _end_of_blocks(data: bytes, at: int) -> int:
    while data[at]:
        at += 1 + data[at]
    return at + 1


def _sub_blocks(content: bytes) -> Iterator[bytes]:
    for at in range(0, len(content), 255):
        part = content[at : at + 255]
        yield bytes([len(part)]) + part
