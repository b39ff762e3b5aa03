"""What each picture format can store, detection of the format by content, and size limits."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Literal, TypeAlias

from srno.errors import SRNOError, require

Format: TypeAlias = Literal[
    "PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "AVIF", "JXL", "JP2", "PNM", "TGA", "ICO", "HEIF", "ZARR", "DZI"
]
SequenceKind: TypeAlias = Literal["animation", "pages"]

_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")
"""One of these is in the folder of every Zarr array or group."""


@dataclass(frozen=True, kw_only=True)
class Capability:
    """What a format, as written here, can store."""

    suffixes: tuple[str, ...]
    """File name suffixes, the usual one first."""
    read_suffixes: tuple[str, ...] = ()
    """Further suffixes of files that are read, but not written under this name."""
    bits: tuple[int, ...] = (8,)
    alpha: bool = True
    gray: bool = True
    """Stores gray samples, and so may contain a gray profile."""
    icc: bool = True
    exif: bool = True
    xmp: bool = True
    iptc: bool = False
    comments: bool = False
    texts: bool = False
    """Stores texts under keywords."""
    sequence: SequenceKind | None = None
    """The kind of several pictures that a file can hold."""
    lossless: bool = True
    """At the default quality; WebP and JPEG XL become lossless at 100."""
    max_side: int
    max_pixels: int | None = None
    max_bytes: int | None = None


CAPABILITIES: Mapping[Format, Capability] = MappingProxyType(
    {
        # The format allows 2³¹ - 1, but libpng by default refuses more than a million per side.
        "PNG": Capability(suffixes=(".png",), bits=(8, 16), texts=True, sequence="animation", max_side=1_000_000),
        "TIFF": Capability(
            suffixes=(".tif", ".tiff"), bits=(8, 16), iptc=True, sequence="pages", max_side=2**31 - 1
        ),
        # The format allows 65,535; libjpeg neither writes nor reads more than this.
        "JPEG": Capability(
            suffixes=(".jpg", ".jpeg"), alpha=False, iptc=True, comments=True, lossless=False, max_side=65_500
        ),
        "WEBP": Capability(
            suffixes=(".webp",), gray=False, sequence="animation", lossless=False, max_side=16_383
        ),
        # AV1 allows 65,536; libavif's decoder refuses more than this.
        "AVIF": Capability(suffixes=(".avif",), lossless=False, max_side=32_768, max_pixels=2**28),
        "GIF": Capability(
            suffixes=(".gif",), icc=False, exif=False, xmp=False, comments=True, sequence="animation", lossless=False,
            max_side=65_535,
        ),
        "BMP": Capability(
            suffixes=(".bmp",), alpha=False, icc=False, exif=False, xmp=False, max_side=2**31 - 1, max_bytes=2**32 - 1
        ),
        # The encoder takes 8 bits and no profile; larger sides need a level of the format that few decoders have.
        "JXL": Capability(suffixes=(".jxl",), icc=False, lossless=False, max_side=2**18, max_pixels=2**28),
        "JP2": Capability(
            suffixes=(".jp2",), read_suffixes=(".j2k", ".j2c", ".jpc", ".jpf", ".jpx"), icc=False, exif=False,
            xmp=False, max_side=2**31 - 1,
        ),
        "PNM": Capability(
            suffixes=(".pnm", ".ppm", ".pgm"), read_suffixes=(".pbm",), bits=(8, 16), alpha=False, icc=False,
            exif=False, xmp=False, max_side=2**31 - 1,
        ),
        "TGA": Capability(suffixes=(".tga",), icc=False, exif=False, xmp=False, max_side=65_535),
        "ICO": Capability(suffixes=(".ico",), gray=False, icc=False, exif=False, xmp=False, max_side=256),
    }
)  # fmt: skip
"""Formats that are read and written."""

LARGE_CAPABILITIES: Mapping[Format, Capability] = MappingProxyType(
    {
        "ZARR": Capability(suffixes=(".zarr",), bits=(8, 16), exif=False, xmp=False, max_side=2**31 - 1),
        "DZI": Capability(suffixes=(".dzi",), exif=False, xmp=False, lossless=False, max_side=2**31 - 1),
    }
)
"""Formats of many files, which are only written tile by tile."""


def capability_of(name: Format) -> Capability:
    """What a format that is written can store."""
    return CAPABILITIES.get(name) or LARGE_CAPABILITIES[name]


READ_SUFFIXES: Mapping[str, Format] = MappingProxyType(
    {
        **{
            suffix: name
            for name, capability in CAPABILITIES.items()
            for suffix in (*capability.suffixes, *capability.read_suffixes)
        },
        **dict.fromkeys((".heic", ".heif", ".hif"), "HEIF"),
    }
)
"""Suffixes of files that are read; HEIF is not written."""

READ_FORMATS: tuple[Format, ...] = tuple(dict.fromkeys(READ_SUFFIXES.values()))

EXTRAS: Mapping[Format, tuple[str, str]] = MappingProxyType(
    {"HEIF": ("pillow_heif", "heif"), "JXL": ("pillow_jxl", "jxl")}
)
"""Module and extra that a format needs."""


def codec(name: Format) -> ModuleType:
    """Import the optional package of a format; the error names the command that installs it."""
    return require(*EXTRAS[name])


def check_codec(name: Format) -> None:
    """Raise an SRNOError with the command that installs it, if the package that a format needs is missing."""
    if name in EXTRAS:
        codec(name)


def check_limits(name: Format, width: int, height: int, channels: int, bits: int) -> None:
    """Raise an SRNOError that names the formats that would work, if a picture of this size cannot be written."""
    excess = _excess(name, width, height, channels, bits)
    if excess is None:
        return
    fits = [
        other
        for other, capability in CAPABILITIES.items()
        if _excess(other, width, height, channels, bits) is None
        and bits in capability.bits
        and (capability.alpha or channels in (1, 3))
    ]
    advice = f"these would work: {', '.join(fits)}" if fits else "no format would work"
    raise SRNOError(f"{name} holds at most {excess}, not {width}×{height}; {advice}")


def check_claimed_size(width: int, height: int, max_pixels: int) -> None:
    """Raise an SRNOError if a header claims more pixels than `max_pixels`, or none."""
    if width * height > max_pixels:
        claim, limit = width * height / 1e6, max_pixels / 1e6
        raise SRNOError(f"claims {width}×{height} = {claim:,.0f} megapixels; the limit is {limit:,.0f}")
    if width < 1 or height < 1:
        raise SRNOError(f"has no pixels ({width}×{height})")


def sniff(data: bytes) -> Format | None:
    """Detect the format of a file from its first bytes; None if it is unknown."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp":
        return _media_format(data)
    if re.match(rb"P[1-6][\s#]", data):
        return "PNM"
    known: Format | None = next((name for magic, name in _MAGIC.items() if data.startswith(magic)), None)
    return "TGA" if known is None and _is_tga(data) else known


_MAGIC: Mapping[bytes, Format] = MappingProxyType(
    {
        b"\x89PNG\r\n\x1a\n": "PNG",
        b"\xff\xd8\xff": "JPEG",
        b"GIF87a": "GIF",
        b"GIF89a": "GIF",
        b"II*\0": "TIFF",
        b"MM\0*": "TIFF",
        b"II+\0": "TIFF",
        b"MM\0+": "TIFF",
        b"BM": "BMP",
        b"\xff\x0a": "JXL",
        b"\0\0\0\x0cJXL \r\n\x87\n": "JXL",
        b"\0\0\0\x0cjP  \r\n\x87\n": "JP2",
        b"\xff\x4f\xff\x51": "JP2",
        b"\0\0\1\0": "ICO",
    }
)


def _media_format(data: bytes) -> Format | None:
    """The first box of an ISO media file lists four-letter brands: the major one, a version, the compatible ones."""
    box = data[8 : min(int.from_bytes(data[:4], "big"), 256)]
    brands = {box[i : i + 4] for i in range(0, len(box), 4) if i != 4}
    if brands & {b"avif", b"avis"}:
        return "AVIF"
    return "HEIF" if brands & {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"} else None


def _is_tga(data: bytes) -> bool:
    """Whether the header is that of a TGA file: the format has no signature, so every field is checked."""
    if len(data) < 18:
        return False
    palette, kind, depth, descriptor = data[1], data[2] & ~8, data[16], data[17]
    width, height = int.from_bytes(data[12:14], "little"), int.from_bytes(data[14:16], "little")
    kinds = {1: (8,), 2: (15, 16, 24, 32), 3: (8, 16)}
    consistent = palette == (kind == 1) and (kind == 1 or not any(data[3:8])) and data[2] < 12
    return consistent and depth in kinds.get(kind, ()) and width > 0 and height > 0 and descriptor & 0xC0 == 0


def _excess(name: Format, width: int, height: int, channels: int, bits: int) -> str | None:
    """Describe the limit that a picture exceeds; None if it fits."""
    capability = capability_of(name)
    if max(width, height) > capability.max_side:
        return f"{capability.max_side:,} pixels per side"
    if capability.max_pixels is not None and width * height > capability.max_pixels:
        return f"{capability.max_pixels:,} pixels"
    # Includes a header, a palette and rows padded to whole words; no format with a limit in bytes stores alpha.
    size = (width * (1 if channels <= 2 else 3) * min(bits, max(capability.bits)) // 8 + 3) * height + 2048
    if capability.max_bytes is not None and size > capability.max_bytes:
        return f"{capability.max_bytes:,} bytes"
    return None


def is_zarr(path: Path) -> bool:
    """Whether a path is the folder of a Zarr array or group."""
    return path.is_dir() and any((path / mark).is_file() for mark in _ZARR_FILES)
