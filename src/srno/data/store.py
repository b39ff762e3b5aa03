"""The cache's two files: `pixels` (header, then one record per picture) and `index.json`, which says where each lies.

A record is the picture's (H, W, 3) bytes followed by its running detail sums. Records are written one after the other
with ordinary writes, so that a full disk is an error when it happens and not a bus error later, and are read through
a memory map.
"""

import json
import mmap
import os
import uuid
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srno.data.detail import blocks, detail_map

FORMAT = 1
ALIGN = 64
PAGE = 4096


class Skipped(NamedTuple):
    """A file that is not used, and why."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Picture:
    """Where a picture lies in the `pixels` file."""

    path: Path
    height: int
    width: int
    offset: int
    seal: int
    """Checksum of the record's ends: enough to notice a file of holes or of something else without reading it all."""

    @property
    def pixels(self) -> slice:
        """The bytes of the picture."""
        return slice(self.offset, self.offset + 3 * self.height * self.width)

    @property
    def detail(self) -> slice:
        """The bytes of its running detail sums."""
        rows, columns = blocks(self.height, self.width)
        start = _aligned(self.pixels.stop)
        return slice(start, start + 8 * rows * columns)


class Record(NamedTuple):
    """What is written for one picture."""

    height: int
    width: int
    data: NDArray[np.uint8]
    """The picture and its running detail sums as bytes, each padded to whole multiples of ALIGN."""


@dataclass(frozen=True)
class Index:
    """The contents of `index.json`."""

    fingerprint: str
    """Of the list of files from which the cache was made."""
    token: str
    """Also in the header of the `pixels` file that belongs to this index."""
    size: int
    pictures: tuple[Picture, ...]
    skipped: tuple[Skipped, ...]


def record(picture: NDArray[np.uint8]) -> Record:
    """The record of a picture (H, W, 3)."""
    parts = (picture.reshape(-1), detail_map(picture).view(np.uint8))
    padded = [np.pad(part, (0, _aligned(part.size) - part.size)) for part in parts]
    return Record(picture.shape[0], picture.shape[1], np.concatenate(padded))


def write(folder: Path, fingerprint: str, records: Iterable[tuple[Path, Record | str]]) -> None:
    """Fill `folder` from pairs of a path and its record, or the reason for which there is none."""
    token, pictures, skipped = uuid.uuid4().hex, list[Picture](), list[Skipped]()
    with (folder / "pixels").open("wb") as file:
        file.write(_header(token))
        for path, found in records:
            if isinstance(found, str):
                skipped.append(Skipped(path, found))
            else:
                pictures.append(Picture(path, found.height, found.width, file.tell(), _seal(found.data)))
                file.write(found.data.data)
        size = file.tell()
        file.flush()
        os.fsync(file.fileno())
    index = Index(fingerprint, token, size, tuple(pictures), tuple(skipped))
    (folder / "index.json").write_text(json.dumps({"format": FORMAT, **asdict(index)}, default=os.fspath))


def read(folder: Path) -> tuple[Index, NDArray[np.uint8]] | None:
    """The index and the mapped bytes of a cache, or None when it is missing, damaged or of another format."""
    try:
        index = _parse(json.loads((folder / "index.json").read_text()))
        with (folder / "pixels").open("rb") as file:
            data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        return (index, data) if _intact(index, data) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # whatever a damaged index may lead to
        return None


def _intact(index: Index, data: NDArray[np.uint8]) -> bool:
    if data.size != index.size or data[:ALIGN].tobytes() != _header(index.token):
        return False
    return all(_seal(data[p.offset : _aligned(p.detail.stop)]) == p.seal for p in index.pictures)


def _parse(raw: dict[str, Any]) -> Index:
    if raw.pop("format") != FORMAT:
        raise ValueError("another format")
    pictures = tuple(Picture(path=Path(p.pop("path")), **p) for p in raw.pop("pictures"))
    skipped = tuple(Skipped(Path(path), reason) for path, reason in raw.pop("skipped"))
    return Index(pictures=pictures, skipped=skipped, **raw)


def _header(token: str) -> bytes:
    return f"srno pictures {FORMAT} {token}".encode().ljust(ALIGN)


def _seal(data: NDArray[np.uint8]) -> int:
    return zlib.crc32(data[-PAGE:].tobytes(), zlib.crc32(data[:PAGE].tobytes()))


def _aligned(position: int) -> int:
    return -(-position // ALIGN) * ALIGN
