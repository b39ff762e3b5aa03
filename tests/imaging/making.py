"""Unusual picture files for the tests, made without the decoders and encoders under test."""

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

from srno.imaging import exif

Array = npt.NDArray[Any]

P3 = pyvips.Image.profile_load("p3")
SRGB = pyvips.Image.profile_load("srgb")
CMYK = pyvips.Image.profile_load("cmyk")

MAKE, DATE, ORIENTATION = 271, 306, 274
EXIF, GPS, WIDTH, MAKER_NOTE, TAKEN = 34665, 34853, 40962, 37500, 36867


def noise(*shape: int, bits: int = 8, seed: int = 0) -> Array:
    dtype = np.uint16 if bits > 8 else np.uint8
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


CAMERA = exif.from_block(camera_exif().tobytes()).block
"""The block that an enlarged picture keeps."""


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


def heif(samples: Array, *, bits: int = 8, **options: Any) -> bytes:
    """HEIC of (h, w, 1 … 4) samples of 8 or 10 bits, without subsampling; lossless but for the colour conversion."""
    import pillow_heif

    height, width, channels = samples.shape
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels] + (";16" if bits > 8 else "")
    levels = (samples.astype(np.uint16) << (16 - bits)) if bits > 8 else samples
    file = pillow_heif.from_bytes(mode=mode, size=(width, height), data=levels.tobytes())
    stream = io.BytesIO()
    file.save(stream, **{"quality": -1, "chroma": 444, **options})
    return stream.getvalue()


def jxl(samples: Array, *, lossless: bool = True, **blocks: Any) -> bytes:
    """JPEG XL of (h, w, 1 … 4) samples of 8 bits, or (h, w, 1) of 16."""
    import pillow_jxl

    mode = "I;16" if samples.dtype == np.uint16 else {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[samples.shape[2]]
    encoder = vars(pillow_jxl)["Encoder"](mode=mode, lossless=lossless, quality=90.0, num_threads=1)
    described = {"exif": None, "jumb": None, "xmp": None, "compress": False, **blocks}
    return encoder(samples.tobytes(), samples.shape[1], samples.shape[0], jpeg_encode=False, **described)


def any_format(image: Image.Image, kind: str, **options: Any) -> bytes:
    """A file of any format that is read."""
    samples = np.asarray(image.convert("RGB") if image.mode not in ("L", "LA", "RGB", "RGBA") else image)
    layered = samples.reshape(*samples.shape[:2], -1)
    if kind == "HEIF":
        return heif(layered, **options)
    if kind == "JXL":
        return jxl(layered, **options)
    if kind == "ICO":
        return encode(image, kind, sizes=[image.size], **options)
    return encode(image, {"JP2": "JPEG2000", "PNM": "PPM"}.get(kind, kind), **options)


def raw_tiff(*, tags: Mapping[int, tuple[int, int]], sub: Mapping[int, tuple[int, int]] | None = None) -> bytes:
    """The head of a TIFF file whose directories hold tags of one number (type, value); `sub` is a directory below."""
    tags = dict(tags)
    size = 2 + 12 * (len(tags) + (sub is not None)) + 4
    if sub is not None:
        tags[330] = (4, 8 + size)
    return b"II*\0" + struct.pack("<I", 8) + _directory(tags) + (b"" if sub is None else _directory(sub)) + bytes(64)


def _directory(tags: Mapping[int, tuple[int, int]]) -> bytes:
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, (kind, value) in sorted(tags.items()))
    return struct.pack("<H", len(tags)) + entries + bytes(4)


def gif_frames(
    size: tuple[int, int], frames: list[tuple[tuple[int, int], Array, int, int | None, int]], *, repeats: int | None = 0
) -> bytes:
    """GIF of frames: place, indices (h, w), disposal, transparent index and delay in 1/100 s; 8 bits, uncompressed.

    Every code of the compressed data has 9 bits, and the table is cleared before it grows.
    """
    data = b"GIF89a" + struct.pack("<HHBBB", *size, 0xF7, 0, 0) + bytes(noise(768))
    if repeats is not None:
        data += b"!\xff\x0bNETSCAPE2.0\x03\x01" + struct.pack("<H", repeats) + b"\0"
    for (left, top), indices, disposal, transparent, delay in frames:
        data += (
            b"!\xf9\x04"
            + struct.pack("<BHB", disposal << 2 | (transparent is not None), delay, transparent or 0)
            + b"\0"
        )
        data += b"," + struct.pack("<HHHHB", left, top, indices.shape[1], indices.shape[0], 0) + b"\x08"
        codes = [
            code for at, index in enumerate(indices.ravel()) for code in ((256, index) if at % 200 == 0 else (index,))
        ]
        bits = sum(int(code) << (9 * at) for at, code in enumerate([*codes, 257]))
        packed = bits.to_bytes((9 * (len(codes) + 1) + 7) // 8, "little")
        data += (
            b"".join(bytes([len(part := packed[at : at + 255])]) + part for at in range(0, len(packed), 255)) + b"\0"
        )
    return data + b";"


XMP = b"""<?xpacket begin="\xef\xbb\xbf" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:t="http://ns.adobe.com/tiff/1.0/" xmlns:exif="http://ns.adobe.com/exif/1.0/"
  xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
  t:Orientation="6" t:Make="Canon" exif:PixelXDimension='32' exif:FNumber="28/10" xmp:Rating="4">
 <t:ImageWidth>32</t:ImageWidth><t:ImageLength>24</t:ImageLength>
 <exif:PixelYDimension>24</exif:PixelYDimension>
 <xmp:Thumbnails><rdf:Alt><rdf:li>AAAA</rdf:li></rdf:Alt></xmp:Thumbnails>
 <dc:title><rdf:Alt><rdf:li xml:lang="x-default">a cat &gt; a dog</rdf:li></rdf:Alt></dc:title>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="w"?>"""
"""An XMP packet with properties that an enlarged picture must not keep."""

IPTC = b"".join(
    b"\x1c" + bytes([record, dataset]) + struct.pack(">H", len(value)) + value
    for record, dataset, value in ((1, 90, b"\x1b%G"), (2, 5, b"A cat"), (2, 25, b"cat"), (2, 25, "Kätzchen".encode()))
)
"""Title and keywords."""
