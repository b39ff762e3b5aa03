"""Files made from the grammar of a format: valid frames around random content."""

import struct
import zlib

import numpy as np

from imaging.making import chunk

NAMES = b"IHDR IDAT PLTE tRNS iCCP eXIf tEXt zTXt iTXt pHYs acTL fcTL fdAT".split()
MARKERS = (0xC0, 0xC2, 0xC4, 0xDA, 0xDB, 0xDD, 0xE0, 0xE1, 0xE2, 0xED, 0xEE, 0xFE)
BOXES = b"ftyp meta hdlr pitm iloc iinf iprp ipco ispe jp2h ihdr colr jxlc Exif".split()
CHUNKS = (b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"EXIF", b"XMP ", b"ICCP")


def _content(rng: np.random.Generator, longest: int = 60) -> bytes:
    return rng.bytes(int(rng.integers(longest)))


def png(rng: np.random.Generator) -> bytes:
    """Chunks with right checksums; the first one is a header, mostly of a small picture."""
    side = 4 if rng.random() < 0.8 else int(rng.integers(2**32))
    depth, colour = int(rng.choice((1, 2, 4, 8, 16))), int(rng.choice((0, 2, 3, 4, 6)))
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", side, 4, depth, colour, 0, 0, int(rng.integers(2))))]
    for _ in range(int(rng.integers(6))):
        name = NAMES[int(rng.integers(len(NAMES)))]
        packed = zlib.compress(_content(rng, 200)) if rng.random() < 0.5 else _content(rng)
        parts.append(chunk(name, (b"key\0" if name[0] > 96 else b"") + packed))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")


BLOCKS = (
    b"",
    b"Exif\0\0II*\0",
    b"http://ns.adobe.com/xap/1.0/\0",
    b"ICC_PROFILE\0\1\1",
    b"Photoshop 3.0\x008BIM",
    b"JFIF\0",
)
TAGS = (256, 257, 258, 259, 262, 273, 274, 277, 278, 279, 284, 322, 324, 330, 339, 700, 34665, 34675, 37500)


def jpeg(rng: np.random.Generator) -> bytes:
    """Segments with right lengths, and the names that blocks of metadata begin with."""
    parts = [b"\xff\xd8"]
    for _ in range(int(rng.integers(1, 10))):
        body = BLOCKS[int(rng.integers(len(BLOCKS)))] + _content(rng)
        parts.append(struct.pack(">BBH", 0xFF, MARKERS[int(rng.integers(len(MARKERS)))], len(body) + 2) + body)
    return b"".join(parts) + _content(rng) + b"\xff\xd9"


def webp(rng: np.random.Generator) -> bytes:
    """Chunks of a RIFF file with right lengths."""
    body = b""
    for _ in range(int(rng.integers(1, 7))):
        content = _content(rng)
        name = CHUNKS[int(rng.integers(len(CHUNKS)))]
        body += name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def boxes(start: bytes, rng: np.random.Generator, depth: int = 0) -> bytes:
    """Boxes of an ISO media file with right lengths, some of them in others."""
    out = start
    for _ in range(int(rng.integers(1, 6))):
        inner = boxes(b"", rng, depth + 1) if depth < 3 and rng.random() < 0.3 else _content(rng)
        out += struct.pack(">I", len(inner) + 8) + BOXES[int(rng.integers(len(BOXES)))] + inner
    return out


def tiff(rng: np.random.Generator) -> bytes:
    """Directories with plausible tags and types, and random values and offsets."""
    order = "<" if rng.random() < 0.5 else ">"
    out = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    for _ in range(int(rng.integers(1, 4))):
        count = int(rng.integers(1, 20))
        tags = sorted(int(tag) for tag in rng.choice(TAGS, count))
        out += struct.pack(order + "H", count)
        for tag in tags:
            value = int(rng.integers(64)) if rng.random() < 0.8 else int(rng.integers(2**32))
            out += struct.pack(order + "HHII", tag, int(rng.integers(1, 14)), int(rng.integers(1, 5)), value)
        following = len(out) + 4 if rng.random() < 0.5 else int(rng.integers(200))
        out += struct.pack(order + "I", following)
    return out + rng.bytes(64)


def pnm(rng: np.random.Generator) -> bytes:
    """Headers with any numbers, comments and white space."""
    numbers = [str(int(rng.choice((0, 1, 3, 255, 256, 65535, 65536, 10**9)))) for _ in range(3)]
    spaces = [(b" ", b"\n", b"\t", b"# text\n", b"")[int(rng.integers(5))] for _ in range(3)]
    fields = b"".join(number.encode() + space for number, space in zip(numbers, spaces, strict=True))
    return b"P%d\n" % int(rng.integers(1, 8)) + fields + rng.bytes(40)


def _side(rng: np.random.Generator) -> int:
    """A side of a picture, mostly a small one."""
    return int(rng.integers(9)) if rng.random() < 0.8 else int(rng.choice((255, 32767, 65535)))


def gif(rng: np.random.Generator) -> bytes:
    """Blocks in any order: frames at any place, delays and disposals, loops and comments."""
    out = b"GIF89a" + struct.pack("<HHBBB", _side(rng), _side(rng), 0x80 | int(rng.integers(8)), 0, 0)
    out += rng.bytes(3 << (out[10] % 8 + 1))
    for _ in range(int(rng.integers(1, 8))):
        place = struct.pack("<HHHHB", *(_side(rng) for _ in range(4)), int(rng.choice((0, 0x40, 0x80))))
        coded = bytes([int(rng.integers(2, 9))]) + _pieces(rng)
        control = b"!\xf9\x04" + rng.bytes(4) + b"\0"
        loop = b"!\xff\x0bNETSCAPE2.0\x03\x01" + rng.bytes(2) + b"\0"
        out += (b"," + place + coded, control, loop, b"!\xfe" + _pieces(rng))[int(rng.integers(4))]
    return out + b";"


def _pieces(rng: np.random.Generator) -> bytes:
    """Data in pieces with their lengths, as in GIF."""
    parts = [_content(rng) for _ in range(int(rng.integers(4)))]
    return b"".join(bytes([len(part)]) + part for part in parts if part) + b"\0"


def bmp(rng: np.random.Generator) -> bytes:
    """A header of any version, depth and compression, with palette and rows behind it."""
    size, depth = int(rng.choice((12, 40, 64, 108, 124))), int(rng.choice((1, 4, 8, 16, 24, 32)))
    sides = (_side(rng), _side(rng) * int(rng.choice((1, -1))))
    if size == 12:
        head = struct.pack("<IHHHH", size, sides[0], sides[1] % 2**16, 1, depth)
    else:
        head = struct.pack("<IiiHHIIiiII", size, *sides, 1, depth, int(rng.integers(7)), 0, 0, 0, _side(rng), 0)
    body = head.ljust(size, b"\0") + rng.bytes(int(rng.integers(1200)))
    return b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, 14 + size + int(rng.choice((0, 8, 1024)))) + body


def tga(rng: np.random.Generator) -> bytes:
    """A header of any kind of picture, with or without palette and run lengths, and a footer."""
    kind, depth = int(rng.choice((1, 2, 3, 9, 10, 11))), int(rng.choice((8, 15, 16, 24, 32)))
    palette = struct.pack("<BHHB", int(kind in (1, 9)), 0, _side(rng), int(rng.choice((15, 16, 24, 32))))
    named = int(rng.integers(10))
    head = struct.pack("<B", named) + palette[:1] + bytes([kind]) + palette[1:]
    head += struct.pack("<HHHHBB", 0, 0, _side(rng), _side(rng), depth, int(rng.integers(64)))
    return head + rng.bytes(int(rng.integers(400))) + bytes(8) + b"TRUEVISION-XFILE.\0"


def ico(rng: np.random.Generator) -> bytes:
    """A directory of icons, each a PNG or a BMP without its file header."""
    count = int(rng.integers(1, 5))
    icons = [png(rng) if rng.random() < 0.5 else bmp(rng)[14:] for _ in range(count)]
    out, at = struct.pack("<HHH", 0, 1, count), 6 + 16 * count
    for icon in icons:
        size = len(icon) if rng.random() < 0.9 else int(rng.integers(2**32))
        out += struct.pack("<BBBBHHII", *rng.bytes(4), 1, 32, size, at)
        at += len(icon)
    return out + b"".join(icons)
