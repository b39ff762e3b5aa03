"""Read picture files. The content determines the format; the size in the header is checked before decoding.

Pillow's file classes are called directly: `Image.open` would try fifty formats and apply a pixel limit that is global
to the process. HEIF with HEVC, the pictures of phones, is decoded by pillow-heif: libvips has no decoder for it.
"""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyvips
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.alpha import unpremultiply
from srno.imaging.box_formats import decode_jp2, decode_jxl, read_jxl_header
from srno.imaging.formats import READ_FORMATS, Format, check_claimed_size, codec, sniff
from srno.imaging.head import RAW_ADVICE, compression_of, raw_name_of
from srno.imaging.icc import collapse_gray, match_profile
from srno.imaging.metadata import Blocks, described
from srno.imaging.picture import Picture, Samples, scale_to_16_bits
from srno.imaging.pillow import decode_pillow
from srno.imaging.simple_formats import decode_ico, decode_pnm, read_pnm_header
from srno.imaging.vips import claimed_size, decode_vips

MAX_PIXELS = 500_000_000

DECODER_ERRORS = (
    pyvips.Error,
    Image.DecompressionBombError,
    SyntaxError,
    EOFError,
    ValueError,
    IndexError,
    OverflowError,
    AssertionError,
    struct.error,
)
"""What the decoders raise on damaged files, besides OSError."""

_P3_PRIMARIES = 12
_HDR_CURVES = {16: "PQ", 18: "HLG"}
"""Codes of colour primaries and brightness curves in H.273."""


def read(source: Path | bytes, *, max_pixels: int = MAX_PIXELS, name: str | None = None) -> Picture:
    """Read a picture from a file or from bytes, upright; of an animation the first frame.

    A picture whose header claims more than `max_pixels` is refused before anything is decoded. Errors begin with
    `name`, by default the path.
    """
    name = name or (str(source) if isinstance(source, Path) else "the picture")
    try:
        return decode(source.read_bytes() if isinstance(source, Path) else source, name, max_pixels)
    except (*DECODER_ERRORS, OSError) as error:
        raise SRNOError(f"{name}: {explain(error)}") from None


def decode(data: bytes, name: str, max_pixels: int) -> Picture:
    """Decode the content of a file; the errors are those of the decoders, without the name."""
    kind = check_readable(data, name)
    picture = _decode(data, kind, name, max_pixels)
    return replace(picture, compression=compression_of(data, kind, picture.size))


def _decode(data: bytes, kind: Format, name: str, max_pixels: int) -> Picture:
    if kind == "HEIF":
        check_claimed_size(*claimed_size(data, kind), max_pixels)
        return decode_heif(data, max_pixels)
    if kind == "JXL":
        check_claimed_size(*read_jxl_header(data).size, max_pixels)
        decoded = decode_jxl(data)
        return decoded if isinstance(decoded, Picture) else replace(decode(decoded, name, max_pixels), format="JXL")
    if kind == "PNM":
        header = read_pnm_header(data)
        check_claimed_size(header.width, header.height, max_pixels)
        return decode_pnm(data, header)
    if kind == "JP2":
        return decode_jp2(data, max_pixels)
    if kind == "ICO":
        return decode_ico(data, max_pixels)
    if kind in ("BMP", "GIF", "TGA"):
        return decode_pillow(data, kind, max_pixels)
    return decode_vips(data, kind, max_pixels)


def check_readable(data: bytes, name: str) -> Format:
    """Return the format of a file; raise an SRNOError if it cannot be read."""
    if not data:
        raise SRNOError("the file is empty")
    raw = raw_name_of(data, Path(name).suffix)
    if raw is not None:
        raise SRNOError(f"{raw} is a camera's RAW format and is not read; {RAW_ADVICE}")
    kind = sniff(data)
    if kind is None:
        raise SRNOError(f"not a picture in a known format ({', '.join(READ_FORMATS)})")
    return kind


def explain(error: Exception) -> str:
    """Return the reason for a failure as one line: that of ours or of the system, or else that the file is damaged."""
    if isinstance(error, SRNOError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    detail = _detail(error)
    if "is not configured" in detail:  # libtiff lacks a decoder
        return f"compressed in a way that this build of libvips does not read{detail}; convert it to deflate"
    return f"damaged or cut short{detail}"


def _detail(error: Exception) -> str:
    """Return the last line of a decoder's message, in brackets; libvips prepends the messages of earlier errors."""
    text = error.detail if isinstance(error, pyvips.Error) else str(error)
    lines = [line.strip() for line in text.splitlines() if any(character.isalpha() for character in line)]
    return f" ({lines[-1]})" if lines else ""


def decode_heif(data: bytes, max_pixels: int) -> Picture:
    """Decode the primary picture; one whose header claims more than `max_pixels` is refused before.

    The file states the rotation outside EXIF, and the decoder applies it.
    """
    heif = codec("HEIF")
    try:
        file = heif.open_heif(data, convert_hdr_to_8bit=False, hdr_to_16bit=False)
        image = file[file.primary_index]
        check_claimed_size(image.size[0], image.size[1], max_pixels)
        samples: Samples = np.asarray(image)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return _from_heif(image, samples)


def _from_heif(image: Any, samples: Samples) -> Picture:
    bits = int(image.info["bit_depth"])
    samples = samples.reshape(*samples.shape[:2], -1)
    if bits > 8:
        samples = scale_to_16_bits(samples.astype(np.uint16), bits)
    colours = 1 if samples.shape[2] < 3 else 3
    colour, alpha = samples[..., :colours], samples[..., colours] if samples.shape[2] > colours else None
    if alpha is not None and image.premultiplied_alpha:
        colour = unpremultiply(colour, alpha)
    curve = _HDR_CURVES.get(_heif_code(image, "transfer_characteristics"))
    notes = () if curve is None else (f"HDR brightness ({curve}) is taken as that of sRGB",)
    icc = image.info.get("icc_profile") or (_p3() if _heif_code(image, "color_primaries") == _P3_PRIMARIES else None)
    colour, icc = match_profile(collapse_gray(colour, icc), icc)
    picture = Picture(colour=colour, alpha=alpha, icc=icc, format="HEIF", notes=notes)
    return described(picture, Blocks(exif=image.info.get("exif"), xmp=image.info.get("xmp")))


def _heif_code(image: Any, name: str) -> int:
    return int(image.info.get("nclx_profile", {}).get(name, 0))


def _p3() -> bytes:
    return pyvips.Image.profile_load("p3")
