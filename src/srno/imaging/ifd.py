"""TIFF directories (IFDs), which EXIF blocks and TIFF files share: read as raw values and written at new offsets.

Values are not interpreted, only moved, so the camera's entries are kept bit for bit.
"""

import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import BinaryIO, Literal, TypeAlias

EXIF, GPS, INTEROP = 34665, 34853, 40965
IFD0 = 0
MAX_DIRECTORIES = 65_535
"""Directories of one file that are counted; a valid file may have more, a damaged one may never end."""

_CHILDREN: Mapping[int, frozenset[int]] = MappingProxyType({IFD0: frozenset({EXIF, GPS}), EXIF: frozenset({INTEROP})})
_TYPE_SIZE: Mapping[int, int] = MappingProxyType(
    {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
)
_NUMBER_SIZE: Mapping[int, int] = MappingProxyType(
    {3: 2, 8: 2, **dict.fromkeys((4, 5, 9, 10, 11, 13), 4), **dict.fromkeys((12, 16, 17, 18), 8)}
)
"""Bytes of a number of each type; a fraction is two."""
_LONG, _LONG8 = 4, 16


@dataclass(frozen=True)
class Entry:
    """A tag's value as raw bytes in the file's byte order."""

    type: int
    count: int
    value: bytes
    offset: int | None = None
    """Offset of the value; None if it is inside the directory."""


Directory: TypeAlias = dict[int, "Entry | Directory"]


@dataclass(frozen=True)
class Layout:
    """Byte order, and whether offsets have 8 bytes (BigTIFF) or 4."""

    order: Literal["<", ">"]
    big: bool = False

    @property
    def count(self) -> struct.Struct:
        return struct.Struct(self.order + ("Q" if self.big else "H"))

    @property
    def entry(self) -> struct.Struct:
        return struct.Struct(self.order + ("HHQ8s" if self.big else "HHI4s"))

    @property
    def pointer(self) -> struct.Struct:
        return struct.Struct(self.order + ("Q" if self.big else "I"))

    @property
    def header(self) -> bytes:
        """Everything before the pointer to the first directory."""
        mark = b"II" if self.order == "<" else b"MM"
        return mark + struct.pack(self.order + ("HHH" if self.big else "H"), *((43, 8, 0) if self.big else (42,)))


def swapped(directory: Directory) -> Directory:
    """The same values in the other byte order; bytes of no type, such as a maker's notes, stay."""
    out: Directory = {}
    for tag, item in directory.items():
        if isinstance(item, Entry):
            width = _NUMBER_SIZE.get(item.type, 1)
            parts = (item.value[at : at + width][::-1] for at in range(0, len(item.value), width))
            out[tag] = replace(item, value=b"".join(parts))
        else:
            out[tag] = swapped(item)
    return out


def as_stream(data: bytes | BinaryIO) -> BinaryIO:
    """Bytes as a stream; a stream as it is."""
    return io.BytesIO(data) if isinstance(data, bytes) else data


def read_header(stream: BinaryIO) -> tuple[Layout, int] | None:
    """Read the layout and the offset of the first directory; None if there is no TIFF header."""
    stream.seek(0)
    head = stream.read(16)
    for layout in (Layout("<"), Layout(">"), Layout("<", big=True), Layout(">", big=True)):
        mark, size = layout.header, layout.pointer.size
        if head.startswith(mark) and len(head) >= len(mark) + size:
            return layout, layout.pointer.unpack_from(head, len(mark))[0]
    return None


def read_directory(
    stream: BinaryIO,
    layout: Layout,
    offset: int,
    wanted: Callable[[int, int], bool],
    *,
    byte_budget: int,
    parent: int = IFD0,
) -> Directory:
    """Read the entries for which `wanted(parent, tag)` holds, children included.

    Entries that point outside the file or exceed `byte_budget` per directory are skipped. Many entries may refer to the
    same bytes, so without this limit a small file could fill the memory. Of a tag that is there twice the first counts,
    as for libtiff.
    """
    directory: Directory = {}
    for tag, type_, count, inline in _table(stream, layout, offset):
        size = _TYPE_SIZE.get(type_, 0) * count
        if not 0 < size <= byte_budget or tag in directory or not wanted(parent, tag):
            continue
        byte_budget -= size
        if tag in _CHILDREN.get(parent, ()):
            if size > len(inline):  # eight bytes of a file with offsets of four
                continue
            pointer = struct.Struct(layout.order + ("Q" if size == 8 else "I"))
            child = pointer.unpack_from(inline)[0]
            directory[tag] = read_directory(stream, layout, child, wanted, byte_budget=byte_budget, parent=tag)
        elif size <= len(inline):
            directory[tag] = Entry(type_, count, inline[:size])
        else:
            at = layout.pointer.unpack(inline)[0]
            value = _read_at(stream, at, size)
            if len(value) == size:
                directory[tag] = Entry(type_, count, value, at)
    return directory


def directory_offsets(stream: BinaryIO, limit: int = MAX_DIRECTORIES) -> list[int]:
    """Offsets of the directories of a file, one for each page or thumbnail, in order; empty if there is no header."""
    header = read_header(stream)
    if header is None:
        return []
    layout, at = header
    offsets: dict[int, None] = {}
    # A damaged file may link back to a directory that was read already.
    while at and at not in offsets and len(offsets) < limit:
        offsets[at] = None
        at = _next_directory(stream, layout, at)
    return list(offsets)


def pack(
    directory: Directory, layout: Layout, base: int, pinned: Entry | None = None, following: int = 0
) -> tuple[int, bytes]:
    """Return the offset of a directory, and its bytes with values and children, for the offset `base`.

    The value of `pinned`, one of the entries, keeps its offset. The directory links to the one at `following`.
    """
    heap = _Heap(layout, base, pinned)
    return heap.place(directory, following), bytes(heap.data)


def link(stream: BinaryIO, layout: Layout, offset: int, following: int) -> None:
    """Make the directory at `offset` link to the one at `following`."""
    stream.seek(_end_of_entries(stream, layout, offset))
    stream.write(layout.pointer.pack(following))


class _Heap:
    """Allocates space from `base` upwards, around the pinned value."""

    def __init__(self, layout: Layout, base: int, pinned: Entry | None) -> None:
        self.layout, self.base, self.end = layout, base, base
        self.pinned = pinned
        start = 0 if pinned is None or pinned.offset is None else pinned.offset
        self.reserved = range(start, start + (0 if pinned is None else len(pinned.value)))
        self.data = bytearray()

    def place(self, directory: Directory, following: int = 0) -> int:
        layout = self.layout
        at = self._allocate(layout.count.size + layout.entry.size * len(directory) + layout.pointer.size)
        table = self._write(at, layout.count.pack(len(directory)))
        for tag, item in sorted(directory.items()):
            if isinstance(item, Entry):
                type_, count, value = item.type, item.count, item.value
            else:
                type_, count, value = (_LONG8 if layout.big else _LONG), 1, layout.pointer.pack(self.place(item))
            if len(value) > layout.pointer.size:
                where = self.reserved.start if item is self.pinned else self._allocate(len(value))
                self._write(where, value)
                value = layout.pointer.pack(where)
            table = self._write(table, layout.entry.pack(tag, type_, count, value))
        self._write(table, layout.pointer.pack(following))
        return at

    def _allocate(self, size: int) -> int:
        at = self.end + self.end % 2
        if at < self.reserved.stop and self.reserved.start < at + size:
            at = self.reserved.stop + self.reserved.stop % 2
        self.end = at + size
        return at

    def _write(self, at: int, value: bytes) -> int:
        """Write `value` and return the offset of its end."""
        start, stop = at - self.base, at - self.base + len(value)
        self.data.extend(bytes(max(0, stop - len(self.data))))
        self.data[start:stop] = value
        return at + len(value)


def _next_directory(stream: BinaryIO, layout: Layout, offset: int) -> int:
    """Offset of the directory that a directory links to; 0 if it is the last."""
    pointer = _read_at(stream, _end_of_entries(stream, layout, offset), layout.pointer.size)
    return layout.pointer.unpack(pointer)[0] if len(pointer) == layout.pointer.size else 0


def _end_of_entries(stream: BinaryIO, layout: Layout, offset: int) -> int:
    head = _read_at(stream, offset, layout.count.size).ljust(layout.count.size, b"\0")
    return offset + layout.count.size + layout.count.unpack(head)[0] * layout.entry.size


def _table(stream: BinaryIO, layout: Layout, offset: int) -> list[tuple[int, int, int, bytes]]:
    head = _read_at(stream, offset, layout.count.size)
    if len(head) < layout.count.size:
        return []
    # A valid directory has no more entries than there are tags.
    count = min(layout.count.unpack(head)[0], 65535)
    table = stream.read(count * layout.entry.size)
    whole = len(table) - len(table) % layout.entry.size
    return list(layout.entry.iter_unpack(table[:whole]))


def _read_at(stream: BinaryIO, offset: int, size: int) -> bytes:
    try:
        stream.seek(offset)
    except (OSError, OverflowError, ValueError):
        return b""
    return stream.read(size)
