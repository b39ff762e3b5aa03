"""Read the header of a picture file: format, upright size, number of frames, compression. Nothing is decoded.

RAW files of cameras are detected and refused: they hold a sensor's values, and often a small preview as TIFF.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import pyvips
from PIL.GifImagePlugin import GifImageFile

from srno.imaging import ifd
from srno.imaging.box_formats import read_jp2_header, read_jxl_header
from srno.imaging.formats import Format, is_zarr, sniff
from srno.imaging.jpeg import jpeg_compression, luma_table_of
from srno.imaging.picture import Codec, Compression
from srno.imaging.pillow import FILE_CLASSES
from srno.imaging.png import frames_of
from srno.imaging.simple_formats import largest_icon, read_pnm_header
from srno.imaging.tiff import page_offsets
from srno.imaging.zarr_source import ZarrPicture

_HEADER_BYTES = 1 << 16
"""Enough to detect the format, and the number of frames of an animated PNG even after a large profile."""


_SIZE_READERS: Mapping[str, Callable[[bytes], tuple[int, int]]] = MappingProxyType(
    {
        "JXL": lambda data: read_jxl_header(data).size,
        "JP2": lambda data: read_jp2_header(data).size,
        "ICO": lambda data: largest_icon(data).size,
    }
)

RAW_SUFFIXES: Mapping[str, str] = MappingProxyType(
    {
        f".{name.lower()}": name
        for name in (
            *("3FR", "ARW", "CR2", "CR3", "CRW", "DCR", "DNG", "ERF", "FFF", "GPR", "IIQ", "KDC", "MEF", "MOS", "MRW"),
            *("NEF", "NRW", "ORF", "PEF", "RAF", "RAW", "RW2", "RWL", "SR2", "SRF", "SRW", "X3F"),
        )
    }
)
"""Suffixes of RAW files, and the names of their formats."""

RAW_ADVICE = "convert it to TIFF with the camera's software, darktable or RawTherapee"

_RAW_MAGIC: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {
        name: re.compile(pattern, re.DOTALL)
        for name, pattern in (
            ("CR2", rb"II\*\0.{4}CR\x02\0"),
            ("CR3", rb".{4}ftypcrx "),
            ("CRW", rb"II.{4}HEAPCCDR"),
            ("IIQ", rb"(?:II\*\0|MM\0\*).{4}IIII"),
            ("MRW", rb"\0MRM"),
            ("ORF", rb"IIR[OS]|MMOR"),
            ("RAF", rb"FUJIFILMCCD-RAW"),
            ("RW2", rb"IIU\0"),
            ("X3F", rb"FOVb"),
        )
    }
)
"""How the files of a format start, if no other format starts so."""
_RAW_MAKERS: Mapping[bytes, str] = MappingProxyType(
    {b"NIKON": "NEF", b"SONY": "ARW", b"PENTAX": "PEF", b"RICOH": "PEF", b"SAMSUNG": "SRW", b"CANON": "CR2"}
)
_PHOTOMETRIC, _MAKE, _SUB_DIRECTORIES, _DNG_VERSION = 262, 271, 330, 50706
_SENSOR_VALUES = (32803, 34892)
"""Photometric codes of a colour filter array, and of the same after interpolation."""
_MAX_DIRECTORY_BYTES = 1 << 16
_MAX_SUB_DIRECTORIES = 16


@dataclass(frozen=True)
class Head:
    """Format, upright (width, height) of the first frame or page, and the number of frames or pages."""

    format: Format
    size: tuple[int, int]
    frames: int = 1
    channels: int = 3
    """Of gray or RGB, with alpha; RGB where the header does not tell."""
    bits: int = 8
    """Per channel, 8 or 16; 8 where the header does not tell."""


def read_head(source: Path | bytes) -> Head | None:
    """Read the header of a file; None if it is unreadable. `read` raises an error that gives the reason."""
    try:
        if isinstance(source, Path) and is_zarr(source):
            height, width, _ = ZarrPicture(source).shape
            return Head("ZARR", (width, height))
        with BytesIO(source) if isinstance(source, bytes) else source.open("rb") as stream:
            if raw_name(stream, "" if isinstance(source, bytes) else source.suffix) is not None:
                return None
            stream.seek(0)
            start = stream.read(_HEADER_BYTES)
            kind = sniff(start)
            return None if kind is None else _head(source, stream, start, kind)
    except Exception:  # decoders raise many kinds of exceptions on damaged files
        return None


def _head(source: Path | bytes, stream: BinaryIO, start: bytes, kind: Format) -> Head:
    if kind in FILE_CLASSES:
        stream.seek(0)
        image = FILE_CLASSES[kind](stream)
        return Head(kind, image.size, image.n_frames if isinstance(image, GifImageFile) else 1)
    if kind == "PNM":
        header = read_pnm_header(start)
        return Head(kind, (header.width, header.height), channels=header.channels, bits=8 if header.white < 256 else 16)
    if kind == "JXL" or kind == "JP2" or kind == "ICO":
        stream.seek(0)
        return Head(kind, _SIZE_READERS[kind](stream.read()))  # long metadata may precede the header of the samples
    head = _head_by_vips(source, kind)
    if kind == "TIFF":
        return replace(head, frames=len(page_offsets(stream)))
    return replace(head, frames=frames_of(start)) if kind == "PNG" else head  # libvips does not count these


def _head_by_vips(source: Path | bytes, kind: Format) -> Head:
    if isinstance(source, bytes):
        image: Any = pyvips.Image.new_from_buffer(source, "", access="sequential")
    else:
        # Not by its name: libvips parses brackets in names as options.
        image = pyvips.Image.new_from_source(pyvips.Source.new_from_file(str(source)), "", access="sequential")
    upright = kind in ("AVIF", "HEIF")  # these state their rotation outside EXIF, and libheif applies it
    rotated = not upright and image.get_typeof("orientation") and image.get("orientation") >= 5
    frames = image.get("n-pages") if image.get_typeof("n-pages") else 1
    size = (image.height, image.width) if rotated else (image.width, image.height)
    channels = min(image.bands, 3) if image.interpretation == "cmyk" else min(image.bands, 4)
    return Head(kind, size, frames, channels, 16 if image.format == "ushort" else 8)


def compression_of(data: bytes, kind: Format | None, size: tuple[int, int]) -> Compression | None:
    """Read the compression of a file; None if it is lossless or unknown. `size` is (width, height).

    JPEG stores its quantisation tables. From the others only the number of bytes is read, which depends on the content
    too: flat pictures seem to be compressed more than they are.
    """
    if kind == "JPEG":
        return jpeg_compression(luma_table_of(data))
    if kind == "WEBP":
        coded = sum(length for name, length in _webp_chunks(data) if name == b"VP8 ")
    elif kind == "AVIF" or kind == "HEIF":
        coded = len(data)
    else:
        return None
    names: dict[Format, Codec] = {"WEBP": "webp", "AVIF": "avif", "HEIF": "heif"}
    return Compression(names[kind], 8 * coded / (size[0] * size[1])) if coded else None


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield name and length of each chunk; frames of animations are inside of other chunks and are not found."""
    at = 12
    while at + 8 <= len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        yield data[at : at + 4], length
        at += 8 + length + length % 2


def raw_name(stream: BinaryIO, suffix: str) -> str | None:
    """Return the name of the RAW format of a file, by content or else by suffix; None if it is another file."""
    stream.seek(0)
    start = stream.read(64)
    name = next((name for name, magic in _RAW_MAGIC.items() if magic.match(start)), None)
    if name is not None:
        return name
    kind = sniff(start)
    if kind == "TIFF" and (name := _name_in_tiff(stream)):
        return RAW_SUFFIXES.get(suffix.lower(), name)
    # A JPEG or PNG stays one under any name; a TIFF structure may be that of a camera that is not known here.
    return RAW_SUFFIXES.get(suffix.lower()) if kind in (None, "TIFF", "TGA") else None


def raw_name_of(data: bytes, suffix: str) -> str | None:
    """The same for the content of a file."""
    return raw_name(BytesIO(data), suffix)


def _name_in_tiff(stream: BinaryIO) -> str | None:
    header = ifd.read_header(stream)
    if header is None:
        return None
    layout = header[0]
    waiting = ifd.directory_offsets(stream, _MAX_SUB_DIRECTORIES)
    maker, sensor = b"", False
    for number, offset in enumerate(waiting):
        directory = _read(stream, layout, offset)
        if _DNG_VERSION in directory:
            return "DNG"
        sensor |= bool(set(_numbers(directory.get(_PHOTOMETRIC), layout)) & set(_SENSOR_VALUES))
        maker = maker or _bytes(directory.get(_MAKE))
        if number < _MAX_SUB_DIRECTORIES:  # a damaged file may link in circles
            waiting += _numbers(directory.get(_SUB_DIRECTORIES), layout)[:_MAX_SUB_DIRECTORIES]
    if not sensor:
        return None
    return next((name for prefix, name in _RAW_MAKERS.items() if maker.upper().startswith(prefix)), "RAW")


def _read(stream: BinaryIO, layout: ifd.Layout, offset: int) -> ifd.Directory:
    tags = (_PHOTOMETRIC, _MAKE, _SUB_DIRECTORIES, _DNG_VERSION)
    return ifd.read_directory(stream, layout, offset, lambda _, tag: tag in tags, byte_budget=_MAX_DIRECTORY_BYTES)


def _bytes(item: ifd.Entry | ifd.Directory | None) -> bytes:
    return item.value if isinstance(item, ifd.Entry) else b""


def _numbers(item: ifd.Entry | ifd.Directory | None, layout: ifd.Layout) -> list[int]:
    """Read an entry of integers with 2, 4 or 8 bytes each."""
    if not isinstance(item, ifd.Entry) or not item.count:
        return []
    code = {2: "H", 4: "I", 8: "Q"}.get(len(item.value) // item.count)
    return [] if code is None else list(struct.unpack(f"{layout.order}{item.count}{code}", item.value))
