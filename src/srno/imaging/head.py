"""Read the header of a picture file: format, upright size, number of frames. Nothing is decoded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import pyvips
from PIL.GifImagePlugin import GifImageFile

from srno.imaging.formats import Format, sniff
from srno.imaging.ico import largest_icon
from srno.imaging.jp2 import read_jp2_header
from srno.imaging.jxl import read_jxl_header
from srno.imaging.pillow import FILE_CLASSES
from srno.imaging.png import frames_of
from srno.imaging.pnm import read_pnm_header
from srno.imaging.raw import raw_name
from srno.imaging.tiff import page_offsets
from srno.imaging.zarr_source import ZarrPicture, is_zarr

_HEADER_BYTES = 1 << 16
"""Enough to detect the format, and the number of frames of an animated PNG even after a large profile."""


_READERS: Mapping[str, Callable[[bytes], tuple[int, int]]] = MappingProxyType(
    {
        "JXL": lambda data: read_jxl_header(data).size,
        "JP2": lambda data: read_jp2_header(data).size,
        "ICO": lambda data: largest_icon(data).size,
    }
)


@dataclass(frozen=True)
class Head:
    """Format, upright (width, height) of the first frame or page, and the number of frames or pages."""

    format: Format
    size: tuple[int, int]
    frames: int = 1


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
        return Head(kind, (header.width, header.height))
    if kind == "JXL" or kind == "JP2" or kind == "ICO":
        stream.seek(0)
        return Head(kind, _READERS[kind](stream.read()))  # long metadata may precede the header of the samples
    head = _head_by_vips(source, kind)
    if kind == "TIFF":
        return Head(kind, head.size, len(page_offsets(stream)))
    return Head(kind, head.size, frames_of(start)) if kind == "PNG" else head  # libvips does not count these


def _head_by_vips(source: Path | bytes, kind: Format) -> Head:
    if isinstance(source, bytes):
        image: Any = pyvips.Image.new_from_buffer(source, "", access="sequential")
    else:
        # Not by its name: libvips parses brackets in names as options.
        image = pyvips.Image.new_from_source(pyvips.Source.new_from_file(str(source)), "", access="sequential")
    upright = kind in ("AVIF", "HEIF")  # these state their rotation outside EXIF, and libheif applies it
    rotated = not upright and image.get_typeof("orientation") and image.get("orientation") >= 5
    frames = image.get("n-pages") if image.get_typeof("n-pages") else 1
    return Head(kind, (image.height, image.width) if rotated else (image.width, image.height), frames)
