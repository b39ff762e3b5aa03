"""Animated WebP: Pillow encodes the box of each frame that changed, and the chunks are put together here.

Pillow's own writer of animations takes all frames at once.
"""

import struct
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import BinaryIO

import numpy as np
from PIL import Image

from srno.imaging.picture import Frame, Picture, PixelBox, changed_box
from srno.imaging.pillow import to_pillow

_PROFILE, _ALPHA, _EXIF, _XMP, _ANIMATION = 0x20, 0x10, 0x08, 0x04, 0x02
_BLEND, _REPLACE = 0, 2
"""Whether a frame is drawn over the one before or replaces its box."""
_FLAGS_OFFSET = 20
_MAX_PLAYS = 65_535
_MAX_DURATION = 2**24 - 1


def write_animated_webp(frames: Iterable[Frame], stream: BinaryIO, plays: int, quality: int) -> None:
    """Write frames of one size to a stream that can seek; the metadata is that of the first."""
    start = stream.tell()
    shown = 0.0
    flags = _ANIMATION
    first = before = None
    for frame in frames:
        picture = frame.picture
        if first is None:
            first = picture
            flags |= _flags(first)
            stream.write(b"RIFF\0\0\0\0WEBP" + _header(first, plays))
        # Rounded to 1/1000 s after summing, so that errors do not add up.
        duration = round(shown + frame.duration) - round(shown)
        shown += frame.duration
        box = (0, 0, *picture.size) if before is None else changed_box(before.samples(), picture.samples())
        flags |= _ALPHA if box is None else 0
        stream.write(_chunk(b"ANMF", _frame(picture, box, min(duration, _MAX_DURATION), quality)))
        before = picture
    assert first is not None
    if first.exif is not None:
        stream.write(_chunk(b"EXIF", first.exif))
    if first.xmp is not None:
        stream.write(_chunk(b"XMP ", first.xmp))
    # Only now the size of the file is known, and whether a frame has alpha.
    end = stream.tell()
    for at, value in ((4, end - start - 8), (_FLAGS_OFFSET, flags)):
        stream.seek(start + at)
        stream.write(struct.pack("<I", value))
    stream.seek(end)


def _flags(first: Picture) -> int:
    """Return the flags of the chunks that the file will have."""
    blocks = ((first.icc, _PROFILE), (first.alpha, _ALPHA), (first.exif, _EXIF), (first.xmp, _XMP))
    return sum(flag for value, flag in blocks if value is not None)


def _header(first: Picture, plays: int) -> bytes:
    width, height = first.size
    chunks = _chunk(b"VP8X", bytes(4) + _three(width - 1) + _three(height - 1))
    if first.icc is not None:
        chunks += _chunk(b"ICCP", first.icc)
    return chunks + _chunk(b"ANIM", bytes(4) + struct.pack("<H", min(plays, _MAX_PLAYS)))


def _frame(picture: Picture, box: PixelBox | None, duration: int, quality: int) -> bytes:
    """Return the content of a frame: its place, its duration and the encoded box; None is no change."""
    if box is None:  # a transparent pixel: encoding an old one again would change it
        box, how, image = (0, 0, 1, 1), _BLEND, Image.fromarray(np.zeros((1, 1, 4), np.uint8))
    else:
        box, how = _even(box), _REPLACE
        image = to_pillow(picture.crop(box))
    buffer = BytesIO()
    image.save(buffer, "WEBP", quality=quality, lossless=quality == 100 or how == _BLEND, exact=True)
    left, top, right, bottom = box
    place = _three(left // 2) + _three(top // 2) + _three(right - left - 1) + _three(bottom - top - 1)
    return place + _three(duration) + bytes([how]) + b"".join(_samples(buffer.getvalue()))


def _even(box: PixelBox) -> PixelBox:
    """Extend a box to the left and to the top: frames begin at even coordinates."""
    left, top, right, bottom = box
    return left - left % 2, top - top % 2, right, bottom


def _samples(data: bytes) -> Iterator[bytes]:
    """Yield the chunks of a WebP file that hold colour and alpha."""
    at = 12
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        end = at + 8 + size + size % 2
        if name in (b"VP8 ", b"VP8L", b"ALPH"):
            yield data[at:end]
        at = end


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


def _three(number: int) -> bytes:
    return number.to_bytes(3, "little")
