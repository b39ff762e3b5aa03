"""Animated PNG: each frame after the first holds only the box that changed, and replaces it."""

import struct
from collections.abc import Iterable
from fractions import Fraction
from typing import BinaryIO

from srno.imaging.picture import Frame, Picture, changed_box
from srno.imaging.png import compressed_samples, encode_samples, make_chunk, metadata_chunks, signature_and_header

_KEEP, _REPLACE = 0, 0


def write_apng(frames: Iterable[Frame], stream: BinaryIO, plays: int, count: int) -> None:
    """Write `count` frames of one size and kind; the metadata is that of the first."""
    number = 0
    before: Picture | None = None
    for frame in frames:
        picture = frame.picture
        box = (0, 0, *picture.size)
        if before is not None:
            # A file must hold at least one pixel of each frame.
            box = changed_box(before.samples(), picture.samples()) or (0, 0, 1, 1)
        encoded = encode_samples(picture.crop(box))
        if before is None:
            stream.write(signature_and_header(encoded))
            stream.write(make_chunk(b"acTL", struct.pack(">II", count, plays)))
            stream.write(metadata_chunks(picture))
        left, top, right, bottom = box
        place = struct.pack(">5I", number, right - left, bottom - top, left, top)
        stream.write(make_chunk(b"fcTL", place + _delay(frame.duration) + bytes([_KEEP, _REPLACE])))
        number += 1
        for part in compressed_samples(encoded):
            if before is None:
                stream.write(make_chunk(b"IDAT", bytes(part)))
            else:
                stream.write(make_chunk(b"fdAT", struct.pack(">I", number) + part))
                number += 1
        before = picture
    stream.write(make_chunk(b"IEND", b""))


def _delay(duration: float) -> bytes:
    """Return milliseconds as a fraction of seconds with 16 bits each."""
    seconds = min(Fraction(duration) / 1000, Fraction(65_535))
    # The denominator must leave room for the numerator.
    exact = seconds.limit_denominator(max(1, min(65_535, int(65_535 / max(seconds, 1)))))
    return struct.pack(">HH", exact.numerator, exact.denominator)
