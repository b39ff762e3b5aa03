"""Pictures as files: whole or not at all."""

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from srno.errors import SRNOError
from srno.files import replacing
from srno.imaging.alpha import flatten
from srno.imaging.exif import PREFIX
from srno.imaging.formats import CAPABILITIES, Capability, Format, check_limits
from srno.imaging.icc import to_srgb
from srno.imaging.picture import Picture
from srno.imaging.pillow import to_pillow
from srno.imaging.png import write_png
from srno.imaging.tiff import needs_big, write_tiff

QUALITY = 95
"""Of JPEG, WebP and AVIF unless asked otherwise."""


@dataclass(frozen=True)
class Written:
    """What became of a picture."""

    notes: tuple[str, ...]
    """One line per thing that the format could not hold."""


def write(
    picture: Picture,
    target: Path | BinaryIO,
    *,
    format: Format,  # noqa: A002 — the word everyone looks for
    quality: int | None = None,
    metadata: bool = True,
) -> Written:
    """Write a picture to a path or a stream.

    A path gets its file at once or not at all, whatever happens in between. `quality` 1 … 100 matters to JPEG, AVIF and
    WebP, which is lossless at 100. Without `metadata` EXIF, resolution and profile are dropped, and the colours of a
    profile other than sRGB are converted so that they look the same.
    """
    if format not in CAPABILITIES:
        raise SRNOError(f"format {format!r} is unknown; these are written: {', '.join(CAPABILITIES)}")
    if quality is not None and not 1 <= quality <= 100:
        raise SRNOError(f"quality {quality} is not between 1 and 100")
    check_limits(format, *picture.size, picture.channels, picture.bits)
    picture, notes = adapt(picture, format, metadata=metadata)
    if isinstance(target, Path):
        notes += _write_file(picture, format, QUALITY if quality is None else quality, target)
    else:
        # A pipe cannot seek, which TIFF needs.
        buffer = io.BytesIO()
        notes += _encode(picture, format, QUALITY if quality is None else quality, buffer)
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
    """The picture as `target` can hold it, and one note per thing that was lost.

    Where the profile cannot stay, the colours are converted to sRGB, so that they look the same.
    """
    capability = CAPABILITIES[target]
    notes: list[str] = []
    if not metadata:
        picture = replace(picture, exif=None, dpi=None)
    if picture.icc is not None and not (metadata and _holds(capability, picture)):
        colour = to_srgb(picture.colour, picture.icc)
        if colour is not picture.colour:
            notes.append("colours converted to sRGB, since the profile is left out")
        picture = replace(picture, colour=colour, icc=None)
    if picture.exif is not None and not (capability.exif and len(picture.exif) <= _exif_max(target)):
        notes.append(f"EXIF left out: {target} cannot hold {'so much' if capability.exif else 'any'}")
        picture = replace(picture, exif=None)
    if picture.alpha is not None and not capability.alpha:
        notes.append(f"laid on white: {target} cannot hold alpha")
        picture = replace(picture, colour=flatten(picture.colour, picture.alpha), alpha=None)
    if picture.bits not in capability.bits:
        notes.append(f"rounded to 8 bits per channel: {target} cannot hold {picture.bits}")
        picture = picture.with_bits(8)
    return picture, tuple(notes)


def _holds(capability: Capability, picture: Picture) -> bool:
    """Whether the picture's profile fits the samples that will be written."""
    return capability.icc and (capability.gray or picture.colour.shape[2] == 3)


def _exif_max(target: Format) -> int:
    # A JPEG segment has 65,535 bytes, less two for its length and six for the prefix.
    return 65_527 if target == "JPEG" else 2**31 - 1


def _encode(picture: Picture, kind: Format, quality: int, stream: BinaryIO) -> tuple[str, ...]:
    """Write a picture that fits the format; the notes are the encoder's."""
    if kind == "PNG":
        write_png(picture, stream)
        return ()
    if kind == "TIFF":
        write_tiff(picture, stream, big=needs_big(*picture.size, picture.channels, picture.bits))
        return ()
    image, options, notes = _palette(picture) if kind == "GIF" else (to_pillow(picture), {}, ())
    # Pillow writes straight to a file's number where there is one, and does not notice a disk that fills up.
    buffer = io.BytesIO()
    image.save(buffer, kind, **_options(picture, kind, quality), **options)
    stream.write(buffer.getbuffer())
    return notes


def _options(picture: Picture, kind: Format, quality: int) -> dict[str, object]:
    """What Pillow's encoder is told."""
    options: dict[str, object] = {}
    if picture.dpi is not None:
        options["dpi"] = picture.dpi
    if picture.icc is not None:
        options["icc_profile"] = picture.icc
    if picture.exif is not None:
        options["exif"] = PREFIX + picture.exif
    if kind in ("BMP", "GIF"):
        return options
    options["quality"] = quality
    if kind == "WEBP":
        options |= {"lossless": quality == 100, "exact": True}
    elif picture.colour.shape[2] == 3:
        options["subsampling"] = "4:4:4" if quality >= 90 else "4:2:0"
    return options


def _palette(picture: Picture) -> tuple[Image.Image, dict[str, int], tuple[str, ...]]:
    """At most 256 colours; where there is alpha, one of them stands for what is less than half opaque."""
    notes: list[str] = []
    room = 256 if picture.alpha is None else 255
    image = to_pillow(Picture(colour=picture.colour))
    if image.getcolors(room) is None:
        notes.append(f"colours reduced to {room}: GIF cannot hold more")
    image = image.convert("RGB").quantize(room)
    if picture.alpha is None:
        return image, {}, tuple(notes)
    if not np.isin(picture.alpha, (0, 255)).all():
        notes.append("alpha cut to on or off: GIF cannot hold more")
    cut = Image.fromarray(np.where(picture.alpha < 128, np.uint8(room), np.asarray(image)))
    cut.putpalette(image.getpalette() or [])
    return cut, {"transparency": room}, tuple(notes)
