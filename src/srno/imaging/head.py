"""What the head of a picture file says: its format, its size when upright, how many frames. Nothing is decoded."""

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyvips
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile

from srno.imaging.formats import Format, sniff
from srno.imaging.png import frames_of

_START = 1 << 16
"""Bytes in which a format is told, and an animated PNG announces itself, even behind a large profile."""


@dataclass(frozen=True)
class Head:
    """Format, (width, height) as it will be seen, and the number of frames or pages, of which the first is meant."""

    format: Format
    size: tuple[int, int]
    frames: int = 1


def read_head(source: Path | bytes) -> Head | None:
    """None where there is no saying; whoever reads the file in earnest will find out why."""
    try:
        start = source[:_START] if isinstance(source, bytes) else _start(source)
        kind = sniff(start)
        if kind is None:
            return None
        head = _head(source, kind)
        return replace(head, frames=frames_of(start)) if kind == "PNG" else head  # libvips does not count them
    except Exception:  # decoders raise whatever they stumble over in a damaged file
        return None


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_START)


def _head(source: Path | bytes, kind: Format) -> Head:
    if kind == "BMP" or kind == "GIF":
        opened: Any = io.BytesIO(source) if isinstance(source, bytes) else source
        with (BmpImageFile if kind == "BMP" else GifImageFile)(opened) as image:
            return Head(kind, image.size, getattr(image, "n_frames", 1))
    if isinstance(source, bytes):
        image: Any = pyvips.Image.new_from_buffer(source, "", access="sequential")
    else:
        # Not by its name, in which libvips would take brackets for options.
        image = pyvips.Image.new_from_source(pyvips.Source.new_from_file(str(source)), "", access="sequential")
    turned = kind != "AVIF" and image.get_typeof("orientation") and image.get("orientation") >= 5
    frames = image.get("n-pages") if image.get_typeof("n-pages") else 1
    return Head(kind, (image.height, image.width) if turned else (image.width, image.height), frames)
