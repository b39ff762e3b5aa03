"""Decode the formats that may have 16 bits per channel or CMYK, by libvips."""

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyvips

from srno.errors import SRNOError
from srno.imaging import exif, jpeg, png
from srno.imaging.formats import CAPABILITIES, Format, check_claimed_size
from srno.imaging.icc import cmyk_to_srgb, collapse_gray, match_profile, srgb
from srno.imaging.metadata import Blocks, described
from srno.imaging.picture import Picture, Samples, plausible_dpi, scale_to_16_bits
from srno.imaging.tiff import descriptions_of

_LOADERS: Mapping[Format, str] = MappingProxyType(
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


def decode_vips(data: bytes, kind: Format, max_pixels: int, page: tuple[int, int] | None = None) -> Picture:
    """Decode a file, upright; of a TIFF file `page` is the number and the offset of a directory, by default the first.

    A picture whose header claims more than `max_pixels` is refused before anything is decoded.
    """
    number, offset = page or (None, None)
    check_claimed_size(*claimed_size(data, kind, offset), max_pixels)
    if kind == "TIFF":
        check_colour_space(exif.tiff_layout(data, offset))
    # For JPEG "error" would refuse files that every viewer shows; for TIFF in tiles only "warning" detects anything.
    options = {"access": "sequential", "fail_on": "warning" if kind == "TIFF" else "truncated"}
    image: Any = pyvips.Operation.call(_LOADERS[kind], data, **options, **({"page": number} if number else {}))
    check_claimed_size(image.width, image.height, max_pixels)
    check_samples(image)
    samples = image.numpy().reshape(image.height, image.width, image.bands)
    icc = png.profile_of(data) if kind == "PNG" else field_of(image, "icc-profile-data")
    if kind == "AVIF" and samples.dtype == np.uint16:
        bits = field_of(image, "bits-per-sample")
        samples = scale_to_16_bits(samples >> (16 - bits), bits)  # libvips shifts 10 and 12 bits left to 16
    colour, alpha = split_bands(samples, image.interpretation)
    notes = ()
    if image.interpretation == "cmyk":
        colour, icc, notes = cmyk_to_srgb(colour, icc), srgb(), ("CMYK converted to sRGB",)
    elif not CAPABILITIES[kind].gray or kind == "AVIF" or field_of(image, "palette"):
        colour = collapse_gray(colour, icc)
    colour, icc = match_profile(colour, icc)
    picture = Picture(colour=colour, alpha=alpha, icc=icc, dpi=dpi_of(image), format=kind, notes=notes)
    return _described(picture, data, kind, image, offset)


def claimed_size(data: bytes, kind: Format, offset: int | None = None) -> tuple[int, int]:
    """Read the size from the header of formats in which it may exceed what libvips can represent; else (1, 1)."""
    if kind == "PNG" and len(data) >= 24:
        return struct.unpack_from(">II", data, 16)
    if kind == "AVIF" or kind == "HEIF":
        # Every item has a box with its size: the picture, its alpha and each tile of a grid.
        boxes = re.findall(rb"ispe.{4}(.{8})", data[: 1 << 16], re.DOTALL)
        return max((struct.unpack(">II", box) for box in boxes), key=math.prod, default=(1, 1))
    return exif.tiff_layout(data, offset)[:2] if kind == "TIFF" else (1, 1)


def _described(picture: Picture, data: bytes, kind: Format, image: Any, offset: int | None) -> Picture:
    """Add the metadata of the file and turn the picture upright."""
    if kind == "TIFF":
        facts = exif.from_tiff(data, offset)
        xmp, iptc = descriptions_of(data, offset)
        picture = replace(described(picture, Blocks(xmp=xmp, iptc=iptc)), exif=facts.block)
        return upright(picture, facts.orientation)
    block = (png.exif_of(data) if kind == "PNG" else None) or field_of(image, "exif-data")
    picture = described(picture, _blocks(data, kind, image, block))
    if kind == "JPEG" and jpeg.has_extended_xmp(data):
        picture = replace(picture, notes=(*picture.notes, "the part of XMP in further segments is left out"))
    # AVIF has its own rotation, which libheif has applied; the EXIF orientation is ignored there.
    return picture if kind == "AVIF" else upright(picture, exif.from_block(block).orientation)


def _blocks(data: bytes, kind: Format, image: Any, block: bytes | None) -> Blocks:
    if kind == "PNG":
        return Blocks(exif=block, xmp=png.xmp_of(data), iptc=png.iptc_of(data), texts=png.texts_of(data))
    if kind == "JPEG":
        return Blocks(exif=block, xmp=jpeg.xmp_of(data), iptc=jpeg.iptc_of(data), comments=jpeg.comments_of(data))
    return Blocks(exif=block, xmp=field_of(image, "xmp-data"))


def check_colour_space(layout: exif.TiffLayout) -> None:
    """Refuse colour spaces that libvips would read as RGB or report as damage."""
    what = {6: "YCbCr", 8: "CIELAB", 9: "CIELAB", 10: "CIELAB"}.get(layout.photometric)
    if what is not None and not (what == "YCbCr" and layout.compression in _TIFF_JPEG_CODES):
        raise SRNOError(f"colours in {what} are not supported; convert the picture to gray, RGB or CMYK first")


def check_samples(image: Any) -> None:
    if image.format not in ("uchar", "ushort"):
        raise SRNOError(f"samples of type {image.format} are not supported; convert them to 8 or 16 bits first")
    colours = {"b-w": 1, "grey16": 1, "srgb": 3, "rgb16": 3, "cmyk": 4}.get(image.interpretation)
    if colours is None or not 0 <= image.bands - colours <= 1:
        what = f"{image.bands} channels of {image.interpretation}"
        raise SRNOError(f"{what} are not supported; convert the picture to gray, RGB or CMYK first")


def split_bands(samples: Samples, interpretation: str) -> tuple[Samples, Samples | None]:
    """Split samples (h, w, channels) into colour (h, w, 1|3|4) and alpha (h, w)."""
    colours = 4 if interpretation == "cmyk" else (1 if samples.shape[2] < 3 else 3)
    return samples[..., :colours], samples[..., colours] if samples.shape[2] > colours else None


def upright(picture: Picture, orientation: int) -> Picture:
    """Rotate and mirror a picture according to the EXIF orientation 1 … 8."""
    if orientation == 1:
        return picture
    alpha = None if picture.alpha is None else rotate(picture.alpha, orientation)
    dpi = picture.dpi[::-1] if picture.dpi and orientation >= 5 else picture.dpi
    return replace(picture, colour=rotate(picture.colour, orientation), alpha=alpha, dpi=dpi)


def rotate(samples: Samples, orientation: int) -> Samples:
    """2 mirrored, 3 upside down, 4 both; 5 … 8 the same after swapping rows and columns."""
    if orientation >= 5:
        samples = samples.swapaxes(0, 1)
    mirrored, flipped = {2: (1, 0), 3: (1, 1), 4: (0, 1), 6: (1, 0), 7: (1, 1), 8: (0, 1)}.get(orientation, (0, 0))
    return np.ascontiguousarray(samples[:: -1 if flipped else 1, :: -1 if mirrored else 1])


def field_of(image: Any, name: str) -> Any:
    return image.get(name) if image.get_typeof(name) else None


def dpi_of(image: Any) -> tuple[float, float] | None:
    """Return the resolution of the file; libvips reports 1 per millimetre or 72 per inch if there is none."""
    dpi = (image.xres * 25.4, image.yres * 25.4)
    unknown = image.xres == image.yres == 1 or all(abs(value - 72) < 0.1 for value in dpi)
    return None if unknown else plausible_dpi(dpi)
