"""Write pictures to files, atomically."""

import io
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeAlias

import numpy as np
from PIL import Image

from srno.errors import SRNOError
from srno.files import replacing
from srno.imaging.alpha import flatten
from srno.imaging.box_formats import write_jxl
from srno.imaging.exif import EXIF_PREFIX
from srno.imaging.formats import CAPABILITIES, Capability, Format, capability_of, check_codec, check_limits
from srno.imaging.icc import to_srgb
from srno.imaging.jpeg import MAX_COMMENT_BYTES, MAX_IPTC_BYTES, MAX_XMP_BYTES, add_segments
from srno.imaging.picture import Picture, Text
from srno.imaging.pillow import to_pillow
from srno.imaging.png import write_png
from srno.imaging.simple_formats import write_ico, write_pnm
from srno.imaging.tiff import needs_big, write_tiff

DEFAULT_QUALITY = 95
"""Of JPEG, WebP, AVIF and JPEG XL."""


_COMMENT_KEYWORD = "Comment"
_WRITERS: Mapping[str, Callable[[Picture, BinaryIO], None]] = MappingProxyType(
    {"PNG": write_png, "PNM": write_pnm, "ICO": write_ico}
)
_PILLOW_NAMES: Mapping[str, str] = MappingProxyType({"JP2": "JPEG2000"})


@dataclass(frozen=True)
class Written:
    """The result of writing a picture."""

    notes: tuple[str, ...]
    """One line for everything that the format could not store."""


@dataclass(frozen=True)
class NewFile:
    """A file to write that replaces none: one that appears under its name in the meantime stays."""

    path: Path


WriteTarget: TypeAlias = Path | NewFile | BinaryIO


def write(
    picture: Picture,
    target: WriteTarget,
    *,
    format: Format,  # noqa: A002 — the usual name
    quality: int | None = None,
    metadata: bool = True,
) -> Written:
    """Write a picture to a path or a stream.

    A file is written atomically. `quality` 1 … 100 applies to JPEG, AVIF, WebP and JPEG XL; the latter two are lossless
    at 100. Without `metadata` EXIF, XMP, IPTC, comments, texts, resolution and profile are dropped, and the colours of
    a profile other than sRGB are converted so that they look the same.
    """
    quality = check_options(format, quality)
    check_limits(format, *picture.size, picture.channels, picture.bits)
    picture, notes = adapt(picture, format, metadata=metadata)
    with opened(target) as stream:
        return Written(notes + _encode(picture, format, quality, stream))


def check_options(format: Format, quality: int | None) -> int:  # noqa: A002
    """Raise an SRNOError if the format or the quality is not valid; return the quality."""
    if format not in CAPABILITIES:
        raise SRNOError(f"format {format!r} is unknown; choose from {', '.join(CAPABILITIES)}")
    if quality is not None and not 1 <= quality <= 100:
        raise SRNOError(f"quality {quality} is not between 1 and 100")
    check_codec(format)
    return DEFAULT_QUALITY if quality is None else quality


@contextmanager
def opened(target: WriteTarget) -> Generator[BinaryIO]:
    """Open a target as a stream that can seek and be read; a file appears when it is complete."""
    if isinstance(target, Path | NewFile):
        path = target if isinstance(target, Path) else target.path
        try:
            if path.exists() and not path.is_file():
                raise SRNOError(f"{path}: cannot be written, it is not a file")
            with replacing(path, existing=path is target) as stream:
                yield stream
        except FileExistsError:
            raise SRNOError(f"{path}: a file of this name has appeared in the meantime, and is kept") from None
        except OSError as error:
            raise SRNOError(f"{path}: cannot be written ({error.strerror or error})") from None
    else:
        # A pipe cannot seek, which TIFF needs.
        buffer = io.BytesIO()
        yield buffer
        target.write(buffer.getbuffer())


def adapt(picture: Picture, target: Format, *, metadata: bool) -> tuple[Picture, tuple[str, ...]]:
    """Reduce a picture to what `target` can store; return it with one note per loss.

    If the profile is dropped, the colours are converted to sRGB, so that they look the same.
    """
    capability = capability_of(target)
    notes: list[str] = []
    if not metadata:
        picture = replace(picture, exif=None, xmp=None, iptc=None, comments=(), texts=(), dpi=None)
    if picture.icc is not None and not (metadata and _stores_profile(capability, picture)):
        colour = to_srgb(picture.colour, picture.icc)
        if colour is not picture.colour:
            notes.append("colours converted to sRGB, since the profile is left out")
        picture = replace(picture, colour=colour, icc=None)
    picture, losses = _adapt_metadata(picture, target, capability)
    notes += losses
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


def _adapt_metadata(picture: Picture, target: Format, capability: Capability) -> tuple[Picture, list[str]]:
    """Drop the blocks that the format cannot hold, or not in this size; convert comments to texts and back."""
    picture = _convert_comments(picture, capability)
    # A JPEG segment has 65,535 bytes, less two for its length and six for the prefix.
    jpeg = {"exif": 65_527, "xmp": MAX_XMP_BYTES, "iptc": MAX_IPTC_BYTES, "comments": MAX_COMMENT_BYTES}
    notes: list[str] = []
    for field, name in (("exif", "EXIF"), ("xmp", "XMP"), ("iptc", "IPTC"), ("comments", "comments")):
        value: bytes | tuple[bytes, ...] | None = getattr(picture, field)
        size = max(map(len, value), default=0) if isinstance(value, tuple) else len(value or b"")
        held: bool = getattr(capability, field)
        if size > 0 and not (held and size <= (jpeg[field] if target == "JPEG" else 2**31 - 1)):
            notes.append(f"{name} left out: {target} cannot hold {'so much' if held else 'any'}")
            picture = replace(picture, **{field: () if isinstance(value, tuple) else None})
    if picture.texts and not capability.texts:
        keywords = ", ".join(dict.fromkeys(text.keyword for text in picture.texts))
        notes.append(f"texts left out ({keywords}): {target} cannot hold any")
        picture = replace(picture, texts=())
    return picture, notes


def _convert_comments(picture: Picture, capability: Capability) -> Picture:
    """Convert comments to texts under this keyword, or such texts to comments, if the format has only the other."""
    if picture.comments and capability.texts:
        texts = tuple(Text(_COMMENT_KEYWORD, _text_of(comment)) for comment in picture.comments)
        return replace(picture, comments=(), texts=picture.texts + texts)
    if picture.texts and capability.comments and not capability.texts:
        comments = tuple(text.value.encode() for text in picture.texts if text.keyword == _COMMENT_KEYWORD)
        others = tuple(text for text in picture.texts if text.keyword != _COMMENT_KEYWORD)
        return replace(picture, comments=picture.comments + comments, texts=others)
    return picture


def _text_of(comment: bytes) -> str:
    try:
        text = comment.decode()
    except UnicodeDecodeError:
        text = comment.decode("latin-1")
    return text.replace("\0", " ")


def _encode(picture: Picture, kind: Format, quality: int, stream: BinaryIO) -> tuple[str, ...]:
    """Write a picture that fits the format; return the notes of the encoder."""
    if kind == "TIFF":
        write_tiff(picture, stream, big=needs_big(*picture.size, picture.channels, picture.bits))
    elif kind == "JXL":
        write_jxl(picture, stream, quality)
    elif kind in _WRITERS:
        _WRITERS[kind](picture, stream)
    else:
        return _encode_by_pillow(picture, kind, quality, stream)
    return ()


def _encode_by_pillow(picture: Picture, kind: Format, quality: int, stream: BinaryIO) -> tuple[str, ...]:
    image, options, notes = _palette(picture) if kind == "GIF" else (to_pillow(picture), {}, ())
    # Pillow writes directly to the descriptor of a file, and does not report a full disk.
    buffer = io.BytesIO()
    image.save(buffer, _PILLOW_NAMES.get(kind, kind), **pillow_options(picture, kind, quality), **options)
    stream.write(add_segments(buffer.getvalue(), picture) if kind == "JPEG" else buffer.getbuffer())
    return notes


def pillow_options(picture: Picture, kind: Format, quality: int) -> dict[str, object]:
    """Return the options of Pillow's encoder."""
    options: dict[str, object] = {}
    if picture.dpi is not None:
        options["dpi"] = picture.dpi
    if picture.icc is not None:
        options["icc_profile"] = picture.icc
    if picture.exif is not None:
        options["exif"] = EXIF_PREFIX + picture.exif
    if kind == "GIF" and picture.comments:
        options["comment"] = b"\n".join(picture.comments)
    if kind not in ("JPEG", "WEBP", "AVIF"):
        return options
    options["quality"] = quality
    if picture.xmp is not None and kind != "JPEG":
        options["xmp"] = picture.xmp
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
