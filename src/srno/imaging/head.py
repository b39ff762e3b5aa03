"""Read the header of a picture file: format, upright size, number of frames. Nothing is decoded."""

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyvips
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile

from srno.imaging.formats import Format, sniff
from srno.imaging.png import frames_of

_HEADER_BYTES = 1 << 16
"""Enough to detect the format, and the number of frames of an animated PNG even after a large profile."""


@dataclass(frozen=True)
class Head:
    """Format, upright (width, height) of the first frame or page, and the number of frames or pages."""

    format: Format
    size: tuple[int, int]
    frames: int = 1


def read_head(source: Path | bytes) -> Head | None:
    """Read the header of a file; None if it is unreadable. `read` raises an error that gives the reason."""
    try:
        start = source[:_HEADER_BYTES] if isinstance(source, bytes) else _read_start(source)
        kind = sniff(start)
        if kind is None:
            return None
        head = _head(source, kind)
        return replace(head, frames=frames_of(start)) if kind == "PNG" else head  # libvips does not count them
    except Exception:  # decoders raise many kinds of exceptions on damaged files
        return None


def _read_start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEADER_BYTES)


def _head(source: Path | bytes, kind: Format) -> Head:
    if kind == "BMP" or kind == "GIF":
        opened: Any = io.BytesIO(source) if isinstance(source, bytes) else source
        with (BmpImageFile if kind == "BMP" else GifImageFile)(opened) as image:
            return Head(kind, image.size, getattr(image, "n_frames", 1))
    if isinstance(source, bytes):
        image: Any = pyvips.Image.new_from_buffer(source, "", access="sequential")
    else:
        # Not by its name: libvips parses brackets in names as options.
        image = pyvips.Image.new_from_source(pyvips.Source.new_from_file(str(source)), "", access="sequential")
    rotated = kind != "AVIF" and image.get_typeof("orientation") and image.get("orientation") >= 5
    frames = image.get("n-pages") if image.get_typeof("n-pages") else 1
    return Head(kind, (image.height, image.width) if rotated else (image.width, image.height), frames)
