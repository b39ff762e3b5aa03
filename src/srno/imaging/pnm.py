"""PBM, PGM and PPM: a text header, then samples as text or bytes; 1 bit, or any depth up to 16 bits."""

import re
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from srno.errors import SRNOError
from srno.imaging.picture import Picture

_TOKEN = re.compile(rb"(?:\s|#[^\r\n]*[\r\n]?)*([^\s#]+)")
_BITMAPS, _TEXTS = (1, 4), (1, 2, 3)


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
    count = 2 if data[1] - 48 in _BITMAPS else 3
    while len(numbers) < count:
        found = _TOKEN.match(data, at)
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
    if header.kind in _BITMAPS:  # 1 is black
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
    if header.kind in _TEXTS:
        return _levels_in_text(content, count, bitmap=header.kind == 1)
    if header.kind == 4:  # each row is padded to whole bytes
        stride = (header.width + 7) // 8
        rows = _array(content, stride * header.height, "u1").reshape(header.height, stride)
        return np.unpackbits(rows, axis=1)[:, : header.width].ravel()
    return _array(content, count, "u1" if header.white <= 255 else ">u2")


def _levels_in_text(content: bytes, count: int, *, bitmap: bool) -> NDArray[Any]:
    # The digits of a bitmap may stand without space between them.
    tokens = re.findall(rb"[01]" if bitmap else rb"\S+", re.sub(rb"#[^\r\n]*", b"", content))[:count]
    if len(tokens) < count:
        raise ValueError(f"{len(tokens)} of {count} samples")
    return np.array([int(token) for token in tokens], np.uint32)


def _array(content: bytes, count: int, kind: str) -> NDArray[Any]:
    size = count * np.dtype(kind).itemsize
    if len(content) < size:
        raise ValueError(f"{len(content)} of {size} bytes")
    return np.frombuffer(content, kind, count)
