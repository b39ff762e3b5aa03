"""Read picture files. The content determines the format; the size in the header is checked before decoding.

libvips decodes formats that may have 16 bits per channel or CMYK, Pillow the rest. Pillow's file classes are called
directly: `Image.open` would try fifty formats and apply a pixel limit that is global to the process.
"""

import io
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyvips
from PIL import Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile

from srno.errors import SRNOError
from srno.imaging import exif
from srno.imaging.formats import CAPABILITIES, Format, sniff
from srno.imaging.icc import cmyk_to_srgb, collapse_gray, match_profile, srgb
from srno.imaging.picture import Picture, Samples, plausible_dpi
from srno.imaging.pillow import from_pillow
from srno.imaging.png import exif_of, profile_of

MAX_PIXELS = 500_000_000

_VIPS_LOADERS: Mapping[Format, str] = MappingProxyType(
    {
        "PNG": "pngload_buffer",
        "JPEG": "jpegload_buffer",
        "WEBP": "webpload_buffer",
        "TIFF": "tiffload_buffer",
        "AVIF": "heifload_buffer",
    }
)
_TIFF_JPEG_CODES = (6, 7)
"""TIFF's codes for JPEG: the decoder of 7 converts YCbCr to RGB; the old code 6 is rare and left to libvips."""
_DECODER_ERRORS = (
    pyvips.Error,
    Image.DecompressionBombError,
    SyntaxError,
    EOFError,
    ValueError,
    IndexError,
    OverflowError,
    struct.error,
)


def read(source: Path | bytes, *, max_pixels: int = MAX_PIXELS, name: str | None = None) -> Picture:
    """Read a picture from a file or from bytes, upright; of an animation the first frame.

    A picture whose header claims more than `max_pixels` is refused before anything is decoded. Errors begin with
    `name`, by default the path.
    """
    name = name or (str(source) if isinstance(source, Path) else "the picture")
    try:
        return _decode(source.read_bytes() if isinstance(source, Path) else source, max_pixels)
    except SRNOError as error:
        raise SRNOError(f"{name}: {error}") from None
    except _DECODER_ERRORS as error:
        raise SRNOError(f"{name}: damaged or cut short{_reason(error)}") from None
    except OSError as error:
        raise SRNOError(f"{name}: {error.strerror or f'damaged or cut short{_reason(error)}'}") from None


def _decode(data: bytes, max_pixels: int) -> Picture:
    if not data:
        raise SRNOError("the file is empty")
    kind = sniff(data)
    if kind is None:
        raise SRNOError(f"not a picture in a known format ({', '.join(CAPABILITIES)})")
    if kind == "BMP" or kind == "GIF":
        return _decode_pillow(data, kind, max_pixels)
    return _decode_vips(data, kind, max_pixels)


def _decode_pillow(data: bytes, kind: Format, max_pixels: int) -> Picture:
    image: Image.Image = (BmpImageFile if kind == "BMP" else GifImageFile)(io.BytesIO(data))
    _check_size(*image.size, max_pixels)
    picture = from_pillow(image)
    # Animations declare a transparent colour for their later frames; a first frame that does not use it is opaque.
    if kind == "GIF" and picture.alpha is not None and picture.alpha.min() == 255:
        return replace(picture, alpha=None)
    return picture


def _decode_vips(data: bytes, kind: Format, max_pixels: int) -> Picture:
    _check_size(*_claimed_size(data, kind), max_pixels)
    if kind == "TIFF":
        _check_colour_space(exif.tiff_layout(data))
    # For JPEG "error" would refuse files that every viewer shows; for TIFF "truncated" detects nothing.
    fail_on = "error" if kind == "TIFF" else "truncated"
    image: Any = pyvips.Operation.call(_VIPS_LOADERS[kind], data, access="sequential", fail_on=fail_on)
    _check_size(image.width, image.height, max_pixels)
    _check_samples(image)
    samples = image.numpy().reshape(image.height, image.width, image.bands)
    icc = profile_of(data) if kind == "PNG" else _field(image, "icc-profile-data")
    if kind == "AVIF" and samples.dtype == np.uint16:
        samples = _scale_to_16_bits(samples, _field(image, "bits-per-sample"))
    colour, alpha = _split(samples, image.interpretation)
    if image.interpretation == "cmyk":
        colour, icc = cmyk_to_srgb(colour, icc), srgb()
    elif not CAPABILITIES[kind].gray or kind == "AVIF" or _field(image, "palette"):
        colour = collapse_gray(colour, icc)
    colour, icc = match_profile(colour, icc)
    facts = _facts(data, kind, image)
    picture = Picture(colour=colour, alpha=alpha, icc=icc, exif=facts.block, dpi=_dpi(image), format=kind)
    # AVIF has its own rotation, which libheif has applied; the EXIF orientation is ignored there.
    return picture if kind == "AVIF" else _upright(picture, facts.orientation)


def _facts(data: bytes, kind: Format, image: Any) -> exif.Facts:
    if kind == "TIFF":
        return exif.from_tiff(data)
    return exif.from_block((exif_of(data) if kind == "PNG" else None) or _field(image, "exif-data"))


def _claimed_size(data: bytes, kind: Format) -> tuple[int, int]:
    """Read the size from the header of formats in which it may exceed what libvips can represent; else (1, 1)."""
    if kind == "PNG" and len(data) >= 24:
        return struct.unpack_from(">II", data, 16)
    if kind == "AVIF":
        # Every item has a box with its size: the picture, its alpha and each tile of a grid.
        boxes = re.findall(rb"ispe.{4}(.{8})", data[: 1 << 16], re.DOTALL)
        return max((struct.unpack(">II", box) for box in boxes), key=math.prod, default=(1, 1))
    return exif.tiff_layout(data)[:2] if kind == "TIFF" else (1, 1)


def _check_size(width: int, height: int, max_pixels: int) -> None:
    if width * height > max_pixels:
        claim, limit = width * height / 1e6, max_pixels / 1e6
        raise SRNOError(f"claims {width}×{height} = {claim:,.0f} megapixels; the limit is {limit:,.0f}")
    if width < 1 or height < 1:
        raise SRNOError(f"has no pixels ({width}×{height})")


def _check_colour_space(layout: exif.TiffLayout) -> None:
    """Refuse colour spaces that libvips would read as RGB or report as damage."""
    what = {6: "YCbCr", 8: "CIELAB", 9: "CIELAB", 10: "CIELAB"}.get(layout.photometric)
    if what is not None and not (what == "YCbCr" and layout.compression in _TIFF_JPEG_CODES):
        raise SRNOError(f"colours in {what} are not supported; convert the picture to gray, RGB or CMYK first")


def _check_samples(image: Any) -> None:
    if image.format not in ("uchar", "ushort"):
        raise SRNOError(f"samples of type {image.format} are not supported; convert them to 8 or 16 bits first")
    colours = {"b-w": 1, "grey16": 1, "srgb": 3, "rgb16": 3, "cmyk": 4}.get(image.interpretation)
    if colours is None or not 0 <= image.bands - colours <= 1:
        what = f"{image.bands} channels of {image.interpretation}"
        raise SRNOError(f"{what} are not supported; convert the picture to gray, RGB or CMYK first")


def _split(samples: Samples, interpretation: str) -> tuple[Samples, Samples | None]:
    """Split samples (h, w, channels) into colour (h, w, 1|3|4) and alpha (h, w)."""
    colours = 4 if interpretation == "cmyk" else (1 if samples.shape[2] < 3 else 3)
    return samples[..., :colours], samples[..., colours] if samples.shape[2] > colours else None


def _scale_to_16_bits(samples: Samples, bits: int) -> Samples:
    """Scale samples of 10 or 12 bits, which libvips shifts left to 16, so that white becomes 65535."""
    levels = (samples >> (16 - bits)).astype(np.uint32)
    top = 2**bits - 1
    return ((levels * 65535 + top // 2) // top).astype(np.uint16)


def _upright(picture: Picture, orientation: int) -> Picture:
    """Rotate and mirror a picture according to the EXIF orientation 1 … 8."""
    if orientation == 1:
        return picture
    alpha = None if picture.alpha is None else _rotate(picture.alpha, orientation)
    dpi = picture.dpi[::-1] if picture.dpi and orientation >= 5 else picture.dpi
    return replace(picture, colour=_rotate(picture.colour, orientation), alpha=alpha, dpi=dpi)


def _rotate(samples: Samples, orientation: int) -> Samples:
    """2 mirrored, 3 upside down, 4 both; 5 … 8 the same after swapping rows and columns."""
    if orientation >= 5:
        samples = samples.swapaxes(0, 1)
    mirrored, flipped = {2: (1, 0), 3: (1, 1), 4: (0, 1), 6: (1, 0), 7: (1, 1), 8: (0, 1)}.get(orientation, (0, 0))
    return np.ascontiguousarray(samples[:: -1 if flipped else 1, :: -1 if mirrored else 1])


def _field(image: Any, name: str) -> Any:
    return image.get(name) if image.get_typeof(name) else None


def _dpi(image: Any) -> tuple[float, float] | None:
    """Return the resolution of the file; libvips reports 1 per millimetre or 72 per inch if there is none."""
    dpi = (image.xres * 25.4, image.yres * 25.4)
    unknown = image.xres == image.yres == 1 or all(abs(value - 72) < 0.1 for value in dpi)
    return None if unknown else plausible_dpi(dpi)


def _reason(error: Exception) -> str:
    """Return the last line of a decoder's message, in brackets; libvips prepends the messages of earlier errors."""
    text = error.detail if isinstance(error, pyvips.Error) else str(error)
    lines = [line.strip() for line in text.splitlines() if any(character.isalpha() for character in line)]
    return f" ({lines[-1]})" if lines else ""
