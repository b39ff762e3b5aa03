"""EXIF: kept bit for bit, except what stops being true when a picture is turned upright and changes its size."""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from srno.imaging import ifd

PREFIX = b"Exif\0\0"
"""Stands before the block in JPEG and in some other files."""

_WIDTH, _HEIGHT, _COMPRESSION, _PHOTOMETRIC = 256, 257, 259, 262
_DESCRIPTION, _ORIENTATION, _MAKER_NOTE = 270, 274, 37500
_ROOM = 1 << 20

# How the samples were stored: sizes, compression, strips and tiles, colour tables, and embedded blocks that have a
# place of their own (XMP, IPTC, Photoshop, ICC). All of it describes another file than the one to be written.
_STORAGE = (
    frozenset(range(254, 269))
    | frozenset({273, _ORIENTATION, *range(277, 282), 284, *range(288, 294), 297, 317, *range(320, 326), 330})
    | frozenset({*range(332, 348), *range(512, 533), 700, 33723, 34377, 34675, 37724})
)
# Components, bits per pixel, width and height of the compressed picture.
_COMPRESSED = frozenset({37121, 37122, 40962, 40963})
# In a TIFF file the first directory may hold anything, so there only what EXIF and Windows define is kept: name,
# description, maker and model, software, date, artist, host, copyright, rating, title, comment, author, keywords,
# subject. Resolution is the file's own matter, as are the samples.
_TIFF_TAGS = frozenset(
    {269, _DESCRIPTION, 271, 272, 305, 306, 315, 316, 33432, 18246, 18249, *range(40091, 40096)} | {ifd.EXIF, ifd.GPS}
)
# Descriptions that programs write for themselves; they repeat the size in their own way.
_MACHINE_MADE = (b'{"shape"', b"ImageJ=", b"<?xml", b"<OME")


@dataclass(frozen=True)
class Facts:
    """What the block of a picture says: how to turn it upright, and what stays true afterwards."""

    orientation: int = 1
    block: bytes | None = None


class TiffLayout(NamedTuple):
    """Size, and the codes by which TIFF says what its samples mean and how they are packed."""

    width: int
    height: int
    photometric: int
    compression: int


def from_block(block: bytes | None) -> Facts:
    """The facts in an EXIF block, with or without its prefix."""
    return _facts(b"" if block is None else block.removeprefix(PREFIX), _wanted_in_block, pin=True)


def from_tiff(data: bytes) -> Facts:
    """The facts in a whole TIFF file."""
    return _facts(data, _wanted_in_tiff, pin=False)


def tiff_layout(data: bytes) -> TiffLayout:
    """What the header of a TIFF file claims; 1 where it says nothing."""
    stream = io.BytesIO(data)
    header = ifd.read_header(stream)
    if header is None:
        return TiffLayout(1, 1, 1, 1)
    layout, offset = header
    tags = (_WIDTH, _HEIGHT, _PHOTOMETRIC, _COMPRESSION)
    directory = ifd.read_directory(stream, layout, offset, lambda _, tag: tag in tags, room=_ROOM)
    return TiffLayout(*(_number(directory.get(tag), layout) for tag in tags))


def _wanted_in_block(parent: int, tag: int) -> bool:
    if parent == ifd.IFD0:
        return tag == _ORIENTATION or tag not in _STORAGE
    return parent != ifd.EXIF or tag not in _COMPRESSED


def _wanted_in_tiff(parent: int, tag: int) -> bool:
    if parent == ifd.IFD0:
        return tag == _ORIENTATION or tag in _TIFF_TAGS
    return _wanted_in_block(parent, tag)


def _facts(data: bytes, wanted: Callable[[int, int], bool], *, pin: bool) -> Facts:
    stream = io.BytesIO(data)
    header = ifd.read_header(stream)
    if header is None:
        return Facts()
    layout, offset = header
    directory = ifd.read_directory(stream, layout, offset, wanted, room=_ROOM)
    orientation = _number(directory.pop(_ORIENTATION, None), layout)
    description = directory.get(_DESCRIPTION)
    if isinstance(description, ifd.Entry) and description.value.startswith(_MACHINE_MADE):
        del directory[_DESCRIPTION]
    return Facts(orientation if 1 <= orientation <= 8 else 1, _block(directory, layout, pin=pin))


def _number(item: ifd.Entry | ifd.Directory | None, layout: ifd.Layout) -> int:
    """An entry of one whole number; 1 where there is none."""
    codes = {2: "H", 4: "I", 8: "Q"}
    if not isinstance(item, ifd.Entry) or len(item.value) not in codes:
        return 1
    return struct.unpack(layout.order + codes[len(item.value)], item.value)[0]


def _block(directory: ifd.Directory, layout: ifd.Layout, *, pin: bool) -> bytes | None:
    """A block of its own, with 4-byte offsets whatever the file had."""
    directory = {tag: item for tag, item in directory.items() if isinstance(item, ifd.Entry) or item}
    if not directory:
        return None
    layout = ifd.Layout(layout.order)
    base = len(layout.header) + layout.pointer.size
    at, packed = ifd.pack(directory, layout, base, _pinned(directory, base) if pin else None)
    return layout.header + layout.pointer.pack(at) + packed


def _pinned(directory: ifd.Directory, base: int) -> ifd.Entry | None:
    """Maker notes: many point into themselves by offsets from the start of the block, so they must not move."""
    camera = directory.get(ifd.EXIF)
    note = camera.get(_MAKER_NOTE) if isinstance(camera, dict) else None
    if not isinstance(note, ifd.Entry) or note.offset is None:
        return None
    return note if base <= note.offset <= 0xFFFF - len(note.value) else None
