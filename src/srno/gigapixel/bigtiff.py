"""Tiled BigTIFF: tiles are appended as they are finished, directories follow at the end.

Reduced levels follow the picture in the chain of directories, where GDAL, libvips and OpenSlide look for them.
Bio-Formats finds levels only as OME-TIFF has them: as subdirectories of the picture, with a description in XML. Names
that end in `.ome.tif` get that.
"""

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srno.gigapixel.coding import FULL_COLOUR_QUALITY, compress, difference, encode_jpeg
from srno.gigapixel.container import Container, Stored
from srno.gigapixel.ome import ome_xml
from srno.imaging import ifd
from srno.imaging.formats import Format
from srno.imaging.picture import Samples
from srno.imaging.tiff import exif_entries

_LAYOUT = ifd.Layout("<", big=True)
_HEADER = 16
_BYTE, _ASCII, _SHORT, _LONG, _RATIONAL, _UNDEFINED, _LONG8, _IFD8 = 1, 2, 3, 4, 5, 7, 16, 18
_COMPRESSIONS = {"none": 1, "jpeg": 7, "deflate": 8, "zstd": 50000}
_GRAY, _RGB, _YCBCR = 1, 2, 6
_UNASSOCIATED_ALPHA, _INCH, _HORIZONTAL = 2, 2, 2
_RATIONAL_SCALE = 10_000


@dataclass(frozen=True, eq=False)
class BigTiff(Container):
    """One file; with several levels, each has a directory, marked as reduced."""

    format: ClassVar[Format] = "TIFF"

    ome: bool = False
    """Whether the file is OME-TIFF."""

    def encode(self, samples: Samples) -> bytes:
        samples = self.padded(samples)
        if self.compression == "jpeg":
            return encode_jpeg(samples, self.quality, keep_rgb=self._jpeg_colours == _RGB)
        if self.compression != "none":
            samples = difference(samples)
        return compress(samples.astype(samples.dtype.newbyteorder("<"), copy=False).tobytes(), self.compression)

    def collect(self, folder: Path, stored: list[Stored]) -> bytes:
        places: list[tuple[int, int, int, int, int]] = []
        with _part(folder).open("ab") as stream:
            at = stream.seek(0, os.SEEK_END)
            if at == 0:
                stream.write(_LAYOUT.header + _LAYOUT.pointer.pack(0))
                at = _HEADER
            for level, row, column, data in stored:
                places.append((level, row, column, at, len(data)))
                at += stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        return np.array(places, "<i8").tobytes()

    def discard(self, folder: Path, records: Iterable[bytes]) -> None:
        end = max((int((_places(r)[:, 3] + _places(r)[:, 4]).max()) for r in records), default=0)
        if _part(folder).exists():
            os.truncate(_part(folder), end)

    def finish(self, folder: Path, records: Iterable[bytes], output: Path) -> None:
        if not _part(folder).exists():  # a kill came after the last step
            return
        tables = [np.zeros((*self.levels.tiles(level), 2), "<u8") for level in range(self.levels.count)]
        for record in records:
            for level, row, column, offset, length in _places(record):
                tables[level][row, column] = offset, length
        with _part(folder).open("r+b") as stream:
            directories: list[int] = []
            for level in reversed(range(self.levels.count)):
                entries = self._directory(level, tables[level])
                if self.ome and level == 0:
                    entries |= self._ome_entries(output, directories[::-1])
                following = directories[-1] if directories and not self.ome else 0
                at, packed = ifd.pack(entries, _LAYOUT, stream.seek(0, os.SEEK_END), following=following)
                stream.write(packed)
                directories.append(at)
            stream.seek(len(_LAYOUT.header))
            stream.write(_LAYOUT.pointer.pack(directories[-1]))
            stream.flush()
            os.fsync(stream.fileno())
        _part(folder).replace(output)

    def _directory(self, level: int, table: NDArray[np.uint64]) -> ifd.Directory:
        (height, width), like = self.levels.size_of(level), self.like
        colours = like.colour.shape[2]
        jpeg_colours = self._jpeg_colours if self.compression == "jpeg" and colours == 3 else None
        tags: ifd.Directory = {
            254: _numbers(_LONG, 1 if level else 0),
            256: _numbers(_LONG, width),
            257: _numbers(_LONG, height),
            258: _numbers(_SHORT, *[like.bits] * like.channels),
            259: _numbers(_SHORT, _COMPRESSIONS[self.compression]),
            262: _numbers(_SHORT, jpeg_colours or (_RGB if colours == 3 else _GRAY)),
            277: _numbers(_SHORT, like.channels),
            284: _numbers(_SHORT, 1),
            322: _numbers(_LONG, self.levels.tile),
            323: _numbers(_LONG, self.levels.tile),
            324: ifd.Entry(_LONG8, table[..., 0].size, table[..., 0].tobytes()),
            325: ifd.Entry(_LONG8, table[..., 1].size, table[..., 1].tobytes()),
        }
        if self.compression in ("deflate", "zstd"):
            tags[317] = _numbers(_SHORT, _HORIZONTAL)
        if jpeg_colours == _YCBCR:
            tags[530] = _numbers(_SHORT, *((1, 1) if self.quality >= FULL_COLOUR_QUALITY else (2, 2)))
        if like.alpha is not None:
            tags[338] = _numbers(_SHORT, _UNASSOCIATED_ALPHA)
        if like.icc is not None:
            tags[34675] = ifd.Entry(_UNDEFINED, len(like.icc), like.icc)
        return tags if level else {**self._metadata(), **tags}

    @property
    def _jpeg_colours(self) -> int:
        """How JPEG stores colour. Bio-Formats converts YCbCr of full resolution twice, so OME-TIFF has RGB there."""
        return _RGB if self.ome and self.quality >= FULL_COLOUR_QUALITY else _YCBCR

    def _ome_entries(self, output: Path, directories: list[int]) -> ifd.Directory:
        """The description in XML and the subdirectories of the reduced levels, the largest first."""
        text = ome_xml(output.name, self.levels.size, self.like, self._description()).encode() + b"\0"
        tags: ifd.Directory = {270: ifd.Entry(_ASCII, len(text), text)}
        if directories:
            tags[330] = ifd.Entry(_IFD8, len(directories), struct.pack(f"<{len(directories)}Q", *directories))
        return tags

    def _description(self) -> str:
        entry = self._metadata().get(270)
        return entry.value.rstrip(b"\0").decode("utf-8", "replace") if isinstance(entry, ifd.Entry) else ""

    def _metadata(self) -> ifd.Directory:
        """EXIF, resolution, XMP and IPTC, for the first directory."""
        like = self.like
        tags: ifd.Directory = {}
        if like.exif is not None:
            entries = exif_entries(like.exif)
            tags |= ifd.swapped(entries) if like.exif.startswith(b"MM") else entries
        if like.dpi is not None:
            tags |= {tag: _rational(value) for tag, value in zip((282, 283), like.dpi, strict=True)}
            tags[296] = _numbers(_SHORT, _INCH)
        for tag, kind, value in ((700, _BYTE, like.xmp), (33723, _UNDEFINED, like.iptc)):
            if value is not None:
                tags[tag] = ifd.Entry(kind, len(value), value)
        return tags


def _part(folder: Path) -> Path:
    return folder / "result.tif"


def _places(record: bytes) -> NDArray[np.int64]:
    """Level, row, column, offset and length of the tiles of a record."""
    return np.frombuffer(record, "<i8").reshape(-1, 5)


def _numbers(kind: int, *values: int) -> ifd.Entry:
    return ifd.Entry(kind, len(values), struct.pack(f"<{len(values)}{'H' if kind == _SHORT else 'I'}", *values))


def _rational(value: float) -> ifd.Entry:
    return ifd.Entry(_RATIONAL, 1, struct.pack("<II", round(value * _RATIONAL_SCALE), _RATIONAL_SCALE))
