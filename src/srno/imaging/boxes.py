"""Boxes of ISO media files, JPEG 2000 and JPEG XL: a size, a name of four letters, and the content."""

import struct
from collections.abc import Iterator


def iterate_boxes(data: bytes, start: int = 0, stop: int | None = None) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, and start and end of the content, of each box in data[start:stop]; a damaged box ends the list."""
    stop = len(data) if stop is None else min(stop, len(data))
    at = start
    while at + 8 <= stop:
        size, name = struct.unpack_from(">I4s", data, at)
        header = 8
        if size == 1 and at + 16 <= stop:
            size, header = struct.unpack_from(">Q", data, at + 8)[0], 16
        end = stop if size == 0 else at + size
        if end < at + header:
            return
        yield name, at + header, min(end, stop)
        at = end


def find_box(data: bytes, *path: bytes, start: int = 0, stop: int | None = None) -> bytes | None:
    """Return the content of the first box at a path of names, each inside the one before."""
    for name, first, last in iterate_boxes(data, start, stop):
        if name == path[0]:
            return data[first:last] if len(path) == 1 else find_box(data, *path[1:], start=first, stop=last)
    return None
