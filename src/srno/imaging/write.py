"""Write pictures to files, atomically."""

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from srno.errors import SRNOError
from srno.files import replacing
from srno.imaging.alpha import flatten
from srno.imaging.exif import EXIF_PREFIX
from srno.imaging.formats import CAPABILITIES, Capability, Format, check_limits
from srno.imaging.icc import to_srgb
from srno.imaging.picture import Picture
from srno.imaging.pillow import to_pillow
from srno.imaging.png import write_png
from srno.imaging.tiff import needs_big, write_tiff

DEFAULT_QUALITY = 95
"""Of JPEG, WebP and AVIF."""


@dataclass(frozen=True)
class Written:
    """The result of writing a picture."""

    notes: tuple[str, ...]
    """One line for everything that the format could not store."""


def write(
    picture: Picture,
    target: Path | BinaryIO,
    *,
    format: Format,  # noqa: A002 — the usual name
    quality: int | None = None,
    metadata: bool = True,
) -> Written:
    """Write a picture to a path or a stream.

    A file is written atomically. `quality` 1 … 100 applies to JPEG, AVIF and WebP, which is lossless at 100. Without
    `metadata` EXIF, resolution and profile are dropped, and the colours of a profile other than sRGB are converted so
    that they look the same.
    """
    if format not in CAPABILITIES:
        raise SRNOError(f"format {format!r} is unknown; choose from {', '.join(CAPABILITIES)}")
    if quality is not None and not 1 <= quality <= 100:
        raise SRNOError(f"quality {quality} is not between 1 and 100")
    check_limits(format, *picture.size, picture.channels, picture.bits)
    picture, notes = adapt(picture, format, metadata=metadata)
    if isinstance(target, Path):
        notes += _write_file(picture, format, DEFAULT_QUALITY if quality is None else quality, target)
    else:
        # A pipe cannot seek, which TIFF needs.
        buffer = io.BytesIO()
        notes += _encode(picture, format, DEFAULT_QUALITY if quality is None else quality, buffer)
        target.write(buffer.getbuffer())
    return Written(notes)


def _write_file(picture: Picture, kind: Format, quality: int, path: Path) -> tuple[str, ...]:
    if path.exists() and not path.is_file():
        raise SRNOError(f"{path}: cannot be written, it is not a file")
    try:
        with replacing(path) as stream:
            return _encode(picture, kind, quality, stream)
    except OSError as error:
        raise SRNOError(f"{path}: cannot be written ({error.strerror or error})") from None


def adapt(picture: Picture, target: Format, *, metadata: bool) -> tuple[Picture, tuple[str, ...]]:
    """Reduce a picture to what `target` can store; return it with one note per loss.

    If the profile is dropped, the colours are converted to sRGB, so that they look the same.
    """
    capability = CAPABILITIES[target]
    notes: list[str] = []
    if not metadata:
        picture = replace(picture, exif=None, dpi=None)
    if picture.icc is not None and not (metadata and _stores_profile(capability, picture)):
        colour = to_srgb(picture.colour, picture.icc)
        if colour is not picture.colour:
            notes.append("colours converted to sRGB, since the profile is left out")
        picture = replace(picture, colour=colour, icc=None)
    if picture.exif is not None and not (capability.exif and len(picture.exif) <= _exif_max(target)):
        notes.append(f"EXIF left out: {target} cannot hold {'so much' if capability.exif else 'any'}")
        picture = replace(picture, exif=None)
    if picture.alpha is not None and not capability.alpha:
        notes.append(f"flattened onto white: {target} cannot hold alpha")
        picture = replace(picture, colour=flatten(picture.colour, picture.alpha), alpha=None)
    if picture.bits not in capability.bits:
        notes.append(f"rounded to 8 bits per channel: {target} cannot hold {picture.bits}")
        picture = picture.with_bits(8)
    return picture, tuple(notes)


def _stores_profile(capability: Capability, picture: Picture) -> bool:
    """Whether the format can store the picture's profile."""
    return capability.icc and (capability.gray or picture.colour.shape[2] == 3)


def _exif_max(target: Format) -> int:
    # A JPEG segment has 65,535 bytes, less two for its length and six for the prefix.
    return 65_527 if target == "JPEG" else 2**31 - 1


def _encode(picture: Picture, kind: Format, quality: int, stream: BinaryIO) -> tuple[str, ...]:
    """Write a picture that fits the format; return the notes of the encoder."""
    if kind == "PNG":
        write_png(picture, stream)
        return ()
    if kind == "TIFF":
        write_tiff(picture, stream, big=needs_big(*picture.size, picture.channels, picture.bits))
        return ()
    image, options, notes = _palette(picture) if kind == "GIF" else (to_pillow(picture), {}, ())
    # Pillow writes directly to the descriptor of a file, and does not report a full disk.
    buffer = io.BytesIO()
    image.save(buffer, kind, **_options(picture, kind, quality), **options)
    stream.write(buffer.getbuffer())
    return notes


def _options(picture: Picture, kind: Format, quality: int) -> dict[str, object]:
    """Return the options of Pillow's encoder."""
    options: dict[str, object] = {}
    if picture.dpi is not None:
        options["dpi"] = picture.dpi
    if picture.icc is not None:
        options["icc_profile"] = picture.icc
    if picture.exif is not None:
        options["exif"] = EXIF_PREFIX + picture.exif
    if kind in ("BMP", "GIF"):
        return options
    options["quality"] = quality
    if kind == "WEBP":
        options |= {"lossless": quality == 100, "exact": True}
    elif picture.colour.shape[2] == 3:
        options["subsampling"] = "4:4:4" if quality >= 90 else "4:2:0"
    return options


def _palette(picture: Picture) -> tuple[Image.Image, dict[str, int], tuple[str, ...]]:
    """Reduce to at most 256 colours; with alpha, one of them marks pixels that are less than half opaque."""
    notes: list[str] = []
    max_colours = 256 if picture.alpha is None else 255
    image = to_pillow(Picture(colour=picture.colour))
    if image.getcolors(max_colours) is None:
        notes.append(f"colours reduced to {max_colours}: GIF cannot hold more")
    image = image.convert("RGB").quantize(max_colours)
    if picture.alpha is None:
        return image, {}, tuple(notes)
    if not np.isin(picture.alpha, (0, 255)).all():
        notes.append("alpha reduced to on or off: GIF cannot hold more")
    indexed = Image.fromarray(np.where(picture.alpha < 128, np.uint8(max_colours), np.asarray(image)))
    indexed.putpalette(image.getpalette() or [])
    return indexed, {"transparency": max_colours}, tuple(notes)
