"""JPEG: the segments with XMP, IPTC and comments, which Pillow and libvips handle in part, and quantisation tables."""

import struct
from collections.abc import Iterator, Sequence

from srno.imaging.metadata import PHOTOSHOP_PREFIX, from_photoshop, to_photoshop
from srno.imaging.picture import Compression, Picture

MAX_XMP_BYTES = 65_504
MAX_IPTC_BYTES = 65_506
MAX_COMMENT_BYTES = 65_533
"""A segment has 65,535 bytes, less two for its length and those of a prefix."""

_XMP_PREFIX = b"http://ns.adobe.com/xap/1.0/\0"
_EXTENDED_XMP_PREFIX = b"http://ns.adobe.com/xmp/extension/\0"
_APP0, _APP1, _APP13, _COMMENT, _TABLES, _SCAN = 0xE0, 0xE1, 0xED, 0xFE, 0xDB, 0xDA
_STANDALONE = (0x01, *range(0xD0, 0xD9))
"""Markers without a length."""
_STANDARD_LUMA_SUM = 3688
"""Sum of the quantisation table for luma in annex K of the JPEG standard, which is quality 50."""


def xmp_of(data: bytes) -> bytes | None:
    """Return the XMP packet of a file."""
    return next((part.removeprefix(_XMP_PREFIX) for part in _parts(data, _APP1) if part.startswith(_XMP_PREFIX)), None)


def has_extended_xmp(data: bytes) -> bool:
    """Whether the file has a second packet, for what does not fit into one segment."""
    return any(part.startswith(_EXTENDED_XMP_PREFIX) for part in _parts(data, _APP1))


def iptc_of(data: bytes) -> bytes | None:
    """Return the IPTC data of a file; a long block continues in further segments."""
    prefix = PHOTOSHOP_PREFIX
    blocks = [part.removeprefix(prefix) for part in _parts(data, _APP13) if part.startswith(prefix)]
    return from_photoshop(b"".join(blocks))


def comments_of(data: bytes) -> tuple[bytes, ...]:
    """Return the comments of a file."""
    return tuple(_parts(data, _COMMENT))


def luma_table_of(data: bytes) -> tuple[int, ...] | None:
    """Return the 64 numbers of the first quantisation table, which is that of luma; None if there is none."""
    for part in _parts(data, _TABLES):
        at = 0
        while at < len(part):
            width, number = 1 + (part[at] >> 4), part[at] & 15  # bytes of an entry, number of the table
            entries = part[at + 1 : at + 1 + 64 * width]
            if number == 0 and len(entries) == 64 * width:
                return tuple(int.from_bytes(entries[i : i + width], "big") for i in range(0, len(entries), width))
            at += 1 + 64 * width
    return None


def add_segments(data: bytes, picture: Picture) -> bytes:
    """Add XMP, IPTC and comments of a picture to an encoded file."""
    added = b""
    if picture.xmp is not None:
        added += _segment(_APP1, _XMP_PREFIX + picture.xmp)
    if picture.iptc is not None:
        added += _segment(_APP13, PHOTOSHOP_PREFIX + to_photoshop(picture.iptc))
    for comment in picture.comments:
        added += _segment(_COMMENT, comment)
    # JFIF and EXIF must come first.
    at = next(first - 4 for marker, first, _ in _segments(data) if marker not in (_APP0, _APP1))
    return data[:at] + added + data[at:]


def _segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def _parts(data: bytes, wanted: int) -> Iterator[bytes]:
    return (data[first:last] for marker, first, last in _segments(data) if marker == wanted)


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield marker, and start and end of the content, of each segment before the samples."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _STANDALONE:
            at += 2
        else:
            size = struct.unpack_from(">H", data, at + 2)[0]
            yield marker, at + 4, at + 2 + size
            if marker == _SCAN:
                return
            at += 2 + max(size, 2)


def jpeg_compression(luma_table: Sequence[int] | None) -> Compression | None:
    """The quality whose standard table has the same sum as this one; cameras use other tables."""
    if luma_table is None or len(luma_table) != 64:
        return None
    percent = 100 * sum(luma_table) / _STANDARD_LUMA_SUM
    quality = 100 - percent / 2 if percent <= 100 else 5000 / percent
    return Compression("jpeg", max(1.0, quality))
