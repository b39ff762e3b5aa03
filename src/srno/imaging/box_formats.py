"""JPEG 2000 and JPEG XL, made of boxes: a size, a name of four letters, and the content.

JPEG 2000 is read by Pillow: 8 bits, or 16 bits of gray. JPEG XL is read and written by pillow-jxl-plugin, which
decodes a file as soon as it is opened; its size is therefore read here.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile

from srno.errors import SRNOError
from srno.imaging.formats import check_claimed_size, codec
from srno.imaging.icc import collapse_gray, is_srgb, match_profile
from srno.imaging.metadata import Blocks, described
from srno.imaging.picture import Picture, Samples, scale_to_16_bits
from srno.imaging.pillow import from_pillow

_JXL_CODESTREAM = b"\xff\x0a"
_JXL_RATIOS = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
"""Width to height, by the code in the header less one."""
_JXL_SIZE_BITS = (9, 13, 18, 30)

_JP2_SIZE_MARKER = b"\xff\x4f\xff\x51"
_XMP_ID = bytes.fromhex("be7acfcb97a942e89c71999491e3afac")
_EXIF_ID = b"JpgTiffExif->JP2"
_ICC_METHODS = (2, 3)
_TIFF_STARTS = (b"II*\0", b"MM\0*")
"""How an EXIF block starts."""


def iterate_boxes(data: bytes, start: int = 0, stop: int | None = None) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, and start and end of the content, of each box in data[start:stop]; a damaged box ends the list."""
    stop = len(data) if stop is None else min(stop, len(data))
    at = start
    while at + 8 <= stop:
        size, name = struct.unpack_from(">I4s", data, at)
        header = 8
        if size == 1 and at + 16 <= stop:
            size, header = struct.unpack_from(">Q", data, at + 8)[0], 16
        end = stop if size == 0 else at + size
        if end < at + header:
            return
        yield name, at + header, min(end, stop)
        at = end


def find_box(data: bytes, *path: bytes, start: int = 0, stop: int | None = None) -> bytes | None:
    """Return the content of the first box at a path of names, each inside the one before."""
    for name, first, last in iterate_boxes(data, start, stop):
        if name == path[0]:
            return data[first:last] if len(path) == 1 else find_box(data, *path[1:], start=first, stop=last)
    return None


@dataclass(frozen=True)
class Jp2Header:
    """Size, number of components, and the most bits that one of them has."""

    size: tuple[int, int]
    components: int
    bits: int


def read_jp2_header(data: bytes) -> Jp2Header:
    """Read the header of the codestream; raise ValueError if it is damaged."""
    at = data.find(_JP2_SIZE_MARKER)
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


class _Bits:
    """Reads numbers of a few bits, the lowest bit first."""

    def __init__(self, data: bytes) -> None:
        self.value, self.left = int.from_bytes(data, "little"), 8 * len(data)

    def take(self, count: int) -> int:
        if count > self.left:
            raise ValueError("the header is cut short")
        taken = self.value & ((1 << count) - 1)
        self.value, self.left = self.value >> count, self.left - count
        return taken


@dataclass(frozen=True)
class JxlHeader:
    """Upright (width, height), bits per channel, and whether there are several frames."""

    size: tuple[int, int]
    bits: int = 8
    animated: bool = False


def read_jxl_header(data: bytes) -> JxlHeader:
    """Read the header; raise ValueError if it is damaged."""
    bits = _Bits(_codestream(data)[2:])
    width, height = _size(bits)
    if bits.take(1):  # all metadata is the default
        return JxlHeader((width, height))
    orientation, animated = 0, False
    if bits.take(1):
        orientation = bits.take(3)
        if bits.take(1):
            _size(bits)  # at which the picture should be shown
        if bits.take(1):
            raise SRNOError("a preview inside JPEG XL is not supported; convert the picture to PNG first")
        animated = bool(bits.take(1))
    # The header of an animation would have to be skipped to reach the depth.
    depth = 8 if animated else 32 if bits.take(1) else _depth(bits)
    return JxlHeader((height, width) if orientation >= 4 else (width, height), depth, animated)


def decode_jxl(data: bytes) -> Picture | bytes:
    """Decode a file, or return the JPEG file that it was made from."""
    header = read_jxl_header(data)
    if header.animated:  # the plugin returns the last frame
        raise SRNOError("an animation in JPEG XL is not supported; convert it to WebP or APNG first")
    try:
        is_jpeg, info, content, icc, boxes = codec("JXL").Decoder()(data)
    except RuntimeError:
        # The plugin's message is about building the library.
        raise ValueError("the decoder stopped") from None
    if is_jpeg:
        return bytes(content)
    samples = _samples(content, info)
    colours, depth = info.num_channels, samples.dtype.itemsize
    alpha = samples[..., colours] if info.has_alpha_channel else None
    icc = None if not icc or is_srgb(icc, colours) else bytes(icc)
    colour, icc = match_profile(collapse_gray(samples[..., :colours], icc), icc)
    notes = [f"{header.bits} bits per channel reduced to 8 by the decoder"] if header.bits > 8 * depth else []
    found = {box.box_type: bytes(box.data) for box in reversed(boxes)}
    if b"brob" in found:
        notes.append("EXIF and XMP left out: they are compressed by Brotli")
    picture = Picture(colour=colour, alpha=alpha, icc=icc, format="JXL", notes=tuple(notes))
    return described(picture, Blocks(exif=_exif(found.get(b"Exif", b"")), xmp=found.get(b"xml ")))


def _exif(box: bytes) -> bytes | None:
    """The block of an Exif box, which follows the number of bytes to skip; some encoders leave this number out."""
    if box.startswith(_TIFF_STARTS):
        return box
    return box[4 + int.from_bytes(box[:4], "big") :] or None


def write_jxl(picture: Picture, stream: BinaryIO, quality: int) -> None:
    """Write 8 bits per channel, lossless at quality 100."""
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[picture.channels]
    encoder = codec("JXL").Encoder(mode=mode, lossless=quality == 100, quality=float(quality))
    exif = None if picture.exif is None else bytes(4) + picture.exif
    blocks = {"exif": exif, "jumb": None, "xmp": picture.xmp, "compress": False}
    stream.write(encoder(picture.samples().tobytes(), *picture.size, jpeg_encode=False, **blocks))


def _samples(content: bytes, info: Any) -> Samples:
    """(height, width, channels) of 8 bits, or of 16 if gray; the plugin reduces deeper colour to 8 bits."""
    channels = info.num_channels + info.has_alpha_channel
    depth = len(content) // max(1, info.width * info.height * channels)
    if info.mode.startswith("F") or depth not in (1, 2):
        raise SRNOError("samples of floating point are not supported; convert them to 8 or 16 bits first")
    dtype = np.uint16 if depth == 2 else np.uint8
    return np.frombuffer(content, dtype).reshape(info.height, info.width, channels)


def _codestream(data: bytes) -> bytes:
    """Return the start of the codestream, which may be inside a box."""
    if data.startswith(_JXL_CODESTREAM):
        return data[:64]
    whole = find_box(data, b"jxlc")
    if whole is None:  # in parts, each after its number
        whole = next((data[first + 4 : last] for name, first, last in iterate_boxes(data) if name == b"jxlp"), b"")
    if not whole.startswith(_JXL_CODESTREAM):
        raise ValueError("no codestream")
    return whole[:64]


def _size(bits: _Bits) -> tuple[int, int]:
    small = bits.take(1)
    height = _side(bits, small)
    ratio = bits.take(3)
    if ratio == 0:
        return _side(bits, small), height
    return height * _JXL_RATIOS[ratio - 1][0] // _JXL_RATIOS[ratio - 1][1], height


def _depth(bits: _Bits) -> int:
    code = bits.take(2)
    return (8, 10, 12)[code] if code < 3 else 1 + bits.take(6)


def _side(bits: _Bits, small: int) -> int:
    return 8 * (bits.take(5) + 1) if small else 1 + bits.take(_JXL_SIZE_BITS[bits.take(2)])
