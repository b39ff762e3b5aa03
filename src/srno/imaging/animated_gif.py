"""Animated GIF: one palette for all frames; a frame holds only the box that changed. Pillow compresses the indices."""

import struct
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from srno.imaging.palette import TRANSPARENT, Palette
from srno.imaging.picture import Box, Frame, changed_box

_KEEP, _CLEAR = 1, 2
"""What happens to a frame before the next one is drawn."""
_MAX_DELAY = 65_535


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


def _write_frame(indices: NDArray[np.uint8], box: Box, delay: int, transparent: bool, stream: BinaryIO) -> None:
    left, top, right, bottom = box
    flags = (_CLEAR if transparent else _KEEP) << 2 | transparent
    stream.write(b"!\xf9\x04" + struct.pack("<BHB", flags, delay, TRANSPARENT) + b"\0")
    stream.write(b"," + struct.pack("<HHHHB", left, top, right - left, bottom - top, 0))
    stream.write(_compressed(indices[top:bottom, left:right]))


def _compressed(indices: NDArray[np.uint8]) -> bytes:
    """Return the compressed indices as they stand in a file, taken from one that Pillow writes."""
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
