"""PNM and ICO.

PBM, PGM and PPM are a text header and samples as text or bytes, of 1 to 16 bits. ICO holds several sizes of one icon,
each as PNG or as a bitmap; the largest is read, and one is written.
"""

import math
import re
import struct
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL.IcoImagePlugin import IcoImageFile

from srno.errors import SRNOError
from srno.imaging.formats import check_claimed_size, sniff
from srno.imaging.icc import collapse_gray
from srno.imaging.picture import Picture
from srno.imaging.pillow import from_pillow, to_pillow
from srno.imaging.vips import decode_vips

_PNM_TOKEN = re.compile(rb"(?:\s|#[^\r\n]*[\r\n]?)*([^\s#]+)")
_BITMAP_KINDS, _TEXT_KINDS = (1, 4), (1, 2, 3)

_ICON_LIST, _ICON_ENTRY = struct.Struct("<HHH"), struct.Struct("<BBBBHHII")


@dataclass(frozen=True)
class PnmHeader:
    """Kind 1 … 6 (bitmap, gray or RGB as text, then the same as bytes), size, white, and where the samples start."""

    kind: int
    width: int
    height: int
    white: int
    start: int

    @property
    def channels(self) -> int:
        return 3 if self.kind in (3, 6) else 1


def read_pnm_header(data: bytes) -> PnmHeader:
    """Read the header; raise ValueError if it is damaged."""
    at = 2
    numbers: list[int] = []
    count = 2 if data[1] - 48 in _BITMAP_KINDS else 3
    while len(numbers) < count:
        found = _PNM_TOKEN.match(data, at)
        if found is None or not found[1].isdigit() or len(found[1]) > 10:
            raise ValueError("the header is damaged")
        numbers.append(int(found[1]))
        at = found.end()
    width, height, white = (*numbers, 1)[:3]
    if not 1 <= white <= 65_535:
        raise ValueError(f"a largest value of {white}")
    return PnmHeader(data[1] - 48, width, height, white, at + 1)


def decode_pnm(data: bytes, header: PnmHeader) -> Picture:
    """Decode the samples: 8 bits if white is at most 255, otherwise 16."""
    levels = _levels(data[header.start :], header)
    if levels.max() > header.white:
        raise SRNOError(f"holds a sample of {levels.max()}, above its largest value of {header.white}")
    if header.kind in _BITMAP_KINDS:  # 1 is black
        levels = 1 - levels
    top = 255 if header.white <= 255 else 65_535
    if header.white != top:
        levels = (levels.astype(np.uint32) * np.uint32(top) + np.uint32(header.white // 2)) // np.uint32(header.white)
    colour = levels.astype(np.uint8 if top == 255 else np.uint16).reshape(header.height, header.width, header.channels)
    return Picture(colour=colour, format="PNM")


def write_pnm(picture: Picture, stream: BinaryIO) -> None:
    """Write gray as PGM and RGB as PPM, with bytes."""
    width, height = picture.size
    kind, white = 6 if picture.colour.shape[2] == 3 else 5, 2**picture.bits - 1
    stream.write(f"P{kind}\n{width} {height}\n{white}\n".encode())
    big_endian = picture.colour.astype(picture.colour.dtype.newbyteorder(">"), order="C")
    stream.write(big_endian.tobytes())


def _levels(content: bytes, header: PnmHeader) -> NDArray[Any]:
    """Return the samples in one row, as stored."""
    count = header.width * header.height * header.channels
    if header.kind in _TEXT_KINDS:
        return _levels_in_text(content, count, bitmap=header.kind == 1)
    if header.kind == 4:  # each row is padded to whole bytes
        stride = (header.width + 7) // 8
        rows = _array(content, stride * header.height, "u1").reshape(header.height, stride)
        return np.unpackbits(rows, axis=1)[:, : header.width].ravel()
    return _array(content, count, "u1" if header.white <= 255 else ">u2")


def _levels_in_text(content: bytes, count: int, *, bitmap: bool) -> NDArray[Any]:
    # The digits of a bitmap may follow each other without spaces.
    tokens = re.findall(rb"[01]" if bitmap else rb"\S+", re.sub(rb"#[^\r\n]*", b"", content))[:count]
    if len(tokens) < count:
        raise ValueError(f"{len(tokens)} of {count} samples")
    return np.array([int(token) for token in tokens], np.uint32)


def _array(content: bytes, count: int, kind: str) -> NDArray[Any]:
    size = count * np.dtype(kind).itemsize
    if len(content) < size:
        raise ValueError(f"{len(content)} of {size} bytes")
    return np.frombuffer(content, kind, count)


@dataclass(frozen=True)
class Icon:
    """Size in the header of an icon, its depth in the list, and its content: a PNG file or a bitmap."""

    size: tuple[int, int]
    bits: int
    content: bytes


def largest_icon(data: bytes) -> Icon:
    """Return the largest icon, and of several the one with the most colours; raise ValueError if there is none."""
    count = _ICON_LIST.unpack_from(data)[2]
    entries = [_ICON_ENTRY.unpack_from(data, _ICON_LIST.size + _ICON_ENTRY.size * number) for number in range(count)]
    icons = [_icon(bits, data[start : start + size]) for *_, bits, size, start in entries]
    return max(icons, key=lambda icon: (math.prod(icon.size), icon.bits))


def decode_ico(data: bytes, max_pixels: int) -> Picture:
    """Decode the largest icon; its own header states its size, and the list may differ."""
    icon = largest_icon(data)
    check_claimed_size(*icon.size, max_pixels)
    if sniff(icon.content) == "PNG":
        picture = decode_vips(icon.content, "PNG", max_pixels)
    else:
        with IcoImageFile(BytesIO(_alone(icon))) as image:
            picture = from_pillow(image)
    alpha = None if picture.alpha is None or picture.alpha.min() == 255 else picture.alpha
    return replace(picture, colour=collapse_gray(picture.colour, picture.icc), alpha=alpha, format="ICO")


def write_ico(picture: Picture, stream: BinaryIO) -> None:
    """Write one icon, as PNG."""
    buffer = BytesIO()
    to_pillow(picture).convert("RGBA").save(buffer, "ICO", sizes=[picture.size])
    stream.write(buffer.getbuffer())


def _icon(bits: int, content: bytes) -> Icon:
    if sniff(content) == "PNG":
        return Icon(struct.unpack_from(">II", content, 16), bits, content)
    width, height = struct.unpack_from("<ii", content, 4)
    return Icon((abs(width), abs(height) // 2), bits, content)  # the colours, and below them the transparency


def _alone(icon: Icon) -> bytes:
    """Return a file with this icon only; 0 means 256 pixels or more."""
    width, height = (side if side < 256 else 0 for side in icon.size)
    start = _ICON_LIST.size + _ICON_ENTRY.size
    entry = _ICON_ENTRY.pack(width, height, 0, 0, 1, icon.bits, len(icon.content), start)
    return _ICON_LIST.pack(0, 1, 1) + entry + icon.content
