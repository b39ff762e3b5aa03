"""Unusual picture files for the tests, made without the code under test."""

import io
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyvips
import tifffile
from PIL import Image

Array = npt.NDArray[Any]

P3 = pyvips.Image.profile_load("p3")
SRGB = pyvips.Image.profile_load("srgb")
CMYK = pyvips.Image.profile_load("cmyk")

MAKE, DATE, ORIENTATION = 271, 306, 274
EXIF, GPS, WIDTH, MAKER_NOTE, TAKEN = 34665, 34853, 40962, 37500, 36867


def noise(*shape: int, bits: int = 8, seed: int = 0) -> Array:
    dtype = np.uint16 if bits == 16 else np.uint8
    return np.random.default_rng(seed).integers(0, 2**bits, shape, dtype=dtype)


def encode(image: Image.Image, format: str, **options: Any) -> bytes:  # noqa: A002
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def tiff(samples: Array, **options: Any) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, samples, **{"metadata": None, **options})
    return stream.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(samples: Array, *extra: bytes, size: tuple[int, int] | None = None) -> bytes:
    """PNG of (h, w, 1 … 4) samples, without filters; `extra` chunks precede the data, `size` is a false size."""
    height, width, channels = samples.shape
    colour_type = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    written_size = size or (width, height)
    header = struct.pack(">IIBBBBB", *written_size, samples.dtype.itemsize * 8, colour_type, 0, 0, 0)
    big_endian = samples.astype(samples.dtype.newbyteorder(">"))
    rows = b"".join(b"\0" + row.tobytes() for row in big_endian)
    body = [chunk(b"IHDR", header), *extra, chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def iccp(icc: bytes) -> bytes:
    return chunk(b"iCCP", b"a profile\0\0" + zlib.compress(icc))


def camera_exif(orientation: int | None = None, sizes: bool = True) -> Image.Exif:
    """Make, date, GPS and maker notes, with the dimensions and the thumbnail that cameras add."""
    exif = Image.Exif()
    exif[MAKE] = "Canon"
    exif[DATE] = "2024:05:06 07:08:09"
    if orientation is not None:
        exif[ORIENTATION] = orientation
    if sizes:
        exif[256], exif[257] = 32, 24
    exif.get_ifd(EXIF).update({TAKEN: "2024:05:06 07:08:09", WIDTH: 32, 40963: 24, MAKER_NOTE: b"offsets" * 9})
    exif.get_ifd(GPS).update({1: "N", 2: (48.0, 8.0, 12.5)})
    return exif


def with_thumbnail(block: bytes) -> bytes:
    """A little- or big-endian EXIF block with a second directory that points to a thumbnail."""
    order = "<" if block[:2] == b"II" else ">"
    first = struct.unpack_from(order + "I", block, 4)[0]
    count = struct.unpack_from(order + "H", block, first)[0]
    link = first + 2 + 12 * count
    at = len(block)
    thumbnail = b"\xff\xd8THUMBNAIL\xff\xd9"
    second = struct.pack(order + "H", 2)
    second += struct.pack(order + "HHII", 513, 4, 1, at + 2 + 24 + 4) + struct.pack(
        order + "HHII", 514, 4, 1, len(thumbnail)
    )
    return block[:link] + struct.pack(order + "I", at) + block[link + 4 :] + second + bytes(4) + thumbnail


def profile(space: bytes, tags: Mapping[bytes, bytes]) -> bytes:
    """An ICC profile of version 2 with the given tags, for a monitor with a white point of 5000 K."""
    described = b"desc" + struct.pack(">III", 0, 5, 0)[:8] + b"made\0" + bytes(78)
    white = xyz(0.9642, 1.0, 0.8249)
    tags = {b"desc": described, b"cprt": b"text\0\0\0\0none\0\0\0\0", b"wtpt": white, **tags}
    at = 128 + 4 + 12 * len(tags)
    table, body = struct.pack(">I", len(tags)), b""
    for name, data in tags.items():
        table += struct.pack(">4sII", name, at + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    header = struct.pack(
        ">I4sI4s4s4s12s4s", at + len(body), bytes(4), 0x02400000, b"mntr", space, b"XYZ ", bytes(12), b"acsp"
    )
    return header + bytes(28) + struct.pack(">3I", 0xF6D6, 0x10000, 0xD32D) + bytes(48) + table + body


def xyz(x: float, y: float, z: float) -> bytes:
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(value * 65536) for value in (x, y, z)))


def curve(gamma: float) -> bytes:
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256))


def gray_profile(gamma: float) -> bytes:
    return profile(b"GRAY", {b"kTRC": curve(gamma)})


def rgb_profile(red: float, green: float, blue: float) -> bytes:
    """ProPhoto's primaries with a gamma per channel."""
    primaries = {
        b"rXYZ": xyz(0.7977, 0.2880, 0.0),
        b"gXYZ": xyz(0.1352, 0.7119, 0.0),
        b"bXYZ": xyz(0.0313, 0.0001, 0.8249),
    }
    return profile(b"RGB ", {**primaries, b"rTRC": curve(red), b"gTRC": curve(green), b"bTRC": curve(blue)})
