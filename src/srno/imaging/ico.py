"""ICO: several sizes of one icon, each as PNG or as a bitmap; the largest is read, and one is written."""

import math
import struct
from dataclasses import dataclass, replace
from io import BytesIO
from typing import BinaryIO

from PIL.IcoImagePlugin import IcoImageFile

from srno.imaging.formats import check_claimed_size, sniff
from srno.imaging.icc import collapse_gray
from srno.imaging.picture import Picture
from srno.imaging.pillow import from_pillow, to_pillow
from srno.imaging.vips import decode_vips

_LIST, _ENTRY = struct.Struct("<HHH"), struct.Struct("<BBBBHHII")


@dataclass(frozen=True)
class Icon:
    """Size in the header of an icon, its depth in the list, and its content: a PNG file or a bitmap."""

    size: tuple[int, int]
    bits: int
    content: bytes


def largest_icon(data: bytes) -> Icon:
    """Return the largest icon, and of several the one with the most colours; raise ValueError if there is none."""
    count = _LIST.unpack_from(data)[2]
    entries = [_ENTRY.unpack_from(data, _LIST.size + _ENTRY.size * number) for number in range(count)]
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
    """Return a file with this icon only; 0 stands for 256 pixels or more."""
    width, height = (side if side < 256 else 0 for side in icon.size)
    start = _LIST.size + _ENTRY.size
    entry = _ENTRY.pack(width, height, 0, 0, 1, icon.bits, len(icon.content), start)
    return _LIST.pack(0, 1, 1) + entry + icon.content
