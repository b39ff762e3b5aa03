"""JPEG 2000 by Pillow: 8 bits, or 16 bits of gray; the profile and other metadata are in boxes around the samples."""

import struct
from dataclasses import dataclass, replace
from io import BytesIO

import numpy as np
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile

from srno.errors import SRNOError
from srno.imaging.boxes import find_box, iterate_boxes
from srno.imaging.formats import check_claimed_size
from srno.imaging.icc import match_profile
from srno.imaging.metadata import Blocks, described
from srno.imaging.picture import Picture, scale_to_16_bits
from srno.imaging.pillow import from_pillow

_SIZE_MARKER = b"\xff\x4f\xff\x51"
_XMP_ID = bytes.fromhex("be7acfcb97a942e89c71999491e3afac")
_EXIF_ID = b"JpgTiffExif->JP2"
_ICC_METHODS = (2, 3)


@dataclass(frozen=True)
class Jp2Header:
    """Size, number of components, and the most bits that one of them has."""

    size: tuple[int, int]
    components: int
    bits: int


def read_jp2_header(data: bytes) -> Jp2Header:
    """Read the header of the codestream; raise ValueError if it is damaged."""
    at = data.find(_SIZE_MARKER)
    if at < 0:
        raise ValueError("no codestream")
    right, bottom, left, top = struct.unpack_from(">4I", data, at + 8)
    components = struct.unpack_from(">H", data, at + 40)[0]
    depths = struct.unpack_from(">" + "Bxx" * components, data, at + 42)
    if any(depth & 0x80 for depth in depths):
        raise SRNOError("signed samples are not supported; convert them to 8 or 16 bits first")
    return Jp2Header((right - left, bottom - top), components, max((depth + 1 for depth in depths), default=0))


def decode_jp2(data: bytes, max_pixels: int) -> Picture:
    """Decode a file; a picture whose header claims more than `max_pixels` is refused before."""
    header = read_jp2_header(data)
    check_claimed_size(*header.size, max_pixels)
    if header.bits > 16 or (header.bits > 8 and header.components > 1):
        # Pillow would reduce them to 8 bits, and turn white into black.
        raise SRNOError(f"{header.bits} bits per channel in JPEG 2000 are not supported; convert it to TIFF first")
    with Jpeg2KImageFile(BytesIO(data)) as image:
        check_claimed_size(*image.size, max_pixels)
        picture = replace(from_pillow(image), format="JP2", comments=())
    if header.bits > 8:
        shift = np.uint16(16 - header.bits)  # Pillow shifts the levels left to 16 bits
        picture = replace(picture, colour=scale_to_16_bits(picture.colour >> shift, header.bits))
    colour, icc = match_profile(picture.colour, picture.icc or _profile(data))
    return described(replace(picture, colour=colour, icc=icc), Blocks(exif=_uuid(data, _EXIF_ID), xmp=_xmp(data)))


def _profile(data: bytes) -> bytes | None:
    """Return the profile of the colour box: a method, two numbers, and then the profile."""
    box = find_box(data, b"jp2h", b"colr")
    return box[3:] if box and box[0] in _ICC_METHODS else None


def _xmp(data: bytes) -> bytes | None:
    return _uuid(data, _XMP_ID) or find_box(data, b"xml ")


def _uuid(data: bytes, wanted: bytes) -> bytes | None:
    for name, first, last in iterate_boxes(data):
        if name == b"uuid" and data[first : first + 16] == wanted:
            return data[first + 16 : last]
    return None
