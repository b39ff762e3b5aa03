"""EXIF: kept bit for bit, except entries that become wrong when a picture is rotated upright and resized."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from srno.imaging import ifd

EXIF_PREFIX = b"Exif\0\0"
"""Precedes the block in JPEG and in some other files."""

_WIDTH, _HEIGHT, _COMPRESSION, _PHOTOMETRIC = 256, 257, 259, 262
_DESCRIPTION, _ORIENTATION, _MAKER_NOTE = 270, 274, 37500
_MAX_DIRECTORY_BYTES = 1 << 20

# How the samples are stored: sizes, compression, strips and tiles, colour tables, and embedded blocks (XMP, IPTC,
# Photoshop, ICC). These describe the input file, not the one to be written.
_STORAGE_TAGS = (
    frozenset(range(254, 269))
    | frozenset({273, _ORIENTATION, *range(277, 282), 284, *range(288, 294), 297, 317, *range(320, 326), 330})
    | frozenset({*range(332, 348), *range(512, 533), 700, 33723, 34377, 34675, 37724})
)
# Components, bits per pixel, width and height of the compressed picture.
_COMPRESSED_TAGS = frozenset({37121, 37122, 40962, 40963})
# In a TIFF file the first directory may hold anything, so only the tags that EXIF and Windows define are kept: name,
# description, maker and model, software, date, artist, host, copyright, rating, title, comment, author, keywords,
# subject. The writer sets the resolution and the sample layout.
_TIFF_TAGS = frozenset(
    {269, _DESCRIPTION, 271, 272, 305, 306, 315, 316, 33432, 18246, 18249, *range(40091, 40096)} | {ifd.EXIF, ifd.GPS}
)
# Prefixes of descriptions that programs generate; these contain the old size.
_GENERATED_DESCRIPTIONS = (b'{"shape"', b"ImageJ=", b"<?xml", b"<OME")


@dataclass(frozen=True)
class Facts:
    """The orientation of a picture, and the EXIF block that is valid once it is upright."""

    orientation: int = 1
    block: bytes | None = None


class TiffLayout(NamedTuple):
    """Size, and TIFF's codes for the colour space and the compression."""

    width: int
    height: int
    photometric: int
    compression: int


def from_block(block: bytes | None) -> Facts:
    """Read an EXIF block, with or without its prefix."""
    return _facts(b"" if block is None else block.removeprefix(EXIF_PREFIX), _wanted_in_block, pin=True)


def from_tiff(data: bytes | BinaryIO, page: int | None = None) -> Facts:
    """Read the EXIF entries of a whole TIFF file, from the directory at the offset `page` or else the first."""
    return _facts(data, _wanted_in_tiff, pin=False, page=page)


def tiff_layout(data: bytes | BinaryIO, page: int | None = None) -> TiffLayout:
    """Read the layout from a directory of a TIFF file, by default the first; missing entries are 1."""
    stream = ifd.as_stream(data)
    header = ifd.read_header(stream)
    if header is None:
        return TiffLayout(1, 1, 1, 1)
    layout, first = header
    tags = (_WIDTH, _HEIGHT, _PHOTOMETRIC, _COMPRESSION)
    offset = first if page is None else page
    directory = ifd.read_directory(stream, layout, offset, lambda _, tag: tag in tags, byte_budget=_MAX_DIRECTORY_BYTES)
    return TiffLayout(*(_number(directory.get(tag), layout) for tag in tags))


def _wanted_in_block(parent: int, tag: int) -> bool:
    if parent == ifd.IFD0:
        return tag == _ORIENTATION or tag not in _STORAGE_TAGS
    return parent != ifd.EXIF or tag not in _COMPRESSED_TAGS


def _wanted_in_tiff(parent: int, tag: int) -> bool:
    if parent == ifd.IFD0:
        return tag == _ORIENTATION or tag in _TIFF_TAGS
    return _wanted_in_block(parent, tag)


def _facts(data: bytes | BinaryIO, wanted: Callable[[int, int], bool], *, pin: bool, page: int | None = None) -> Facts:
    stream = ifd.as_stream(data)
    header = ifd.read_header(stream)
    if header is None:
        return Facts()
    layout, first = header
    offset = first if page is None else page
    directory = ifd.read_directory(stream, layout, offset, wanted, byte_budget=_MAX_DIRECTORY_BYTES)
    orientation = _number(directory.pop(_ORIENTATION, None), layout)
    description = directory.get(_DESCRIPTION)
    if isinstance(description, ifd.Entry) and description.value.startswith(_GENERATED_DESCRIPTIONS):
        del directory[_DESCRIPTION]
    return Facts(orientation if 1 <= orientation <= 8 else 1, _block(directory, layout, pin=pin))


def _number(item: ifd.Entry | ifd.Directory | None, layout: ifd.Layout) -> int:
    """Read an entry of one integer; 1 if there is none."""
    codes = {2: "H", 4: "I", 8: "Q"}
    if not isinstance(item, ifd.Entry) or len(item.value) not in codes:
        return 1
    return struct.unpack(layout.order + codes[len(item.value)], item.value)[0]


def _block(directory: ifd.Directory, layout: ifd.Layout, *, pin: bool) -> bytes | None:
    """Pack a directory as a separate block, always with 4-byte offsets."""
    directory = {tag: item for tag, item in directory.items() if isinstance(item, ifd.Entry) or item}
    if not directory:
        return None
    layout = ifd.Layout(layout.order)
    base = len(layout.header) + layout.pointer.size
    at, packed = ifd.pack(directory, layout, base, _pinned(directory, base) if pin else None)
    return layout.header + layout.pointer.pack(at) + packed


def _pinned(directory: ifd.Directory, base: int) -> ifd.Entry | None:
    """Return the maker notes if they can keep their place: many contain offsets from the start of the block."""
    camera = directory.get(ifd.EXIF)
    note = camera.get(_MAKER_NOTE) if isinstance(camera, dict) else None
    if not isinstance(note, ifd.Entry) or note.offset is None:
        return None
    return note if base <= note.offset <= 0xFFFF - len(note.value) else None
