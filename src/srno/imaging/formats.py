"""What each picture format can store, detection of the format by content, and size limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from srno.errors import SRNOError

Format = Literal["PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "AVIF"]


@dataclass(frozen=True, kw_only=True)
class Capability:
    """What a format, as written here, can store."""

    suffixes: tuple[str, ...]
    """File name suffixes, the usual one first."""
    bits: tuple[int, ...] = (8,)
    alpha: bool = True
    gray: bool = True
    """Stores gray samples, and so may contain a gray profile."""
    icc: bool = True
    exif: bool = True
    lossless: bool = True
    """At the default quality; WebP becomes lossless at 100."""
    max_side: int
    max_pixels: int | None = None
    max_bytes: int | None = None


CAPABILITIES: Mapping[Format, Capability] = MappingProxyType(
    {
        # The format allows 2³¹ - 1, but libpng by default refuses more than a million per side.
        "PNG": Capability(suffixes=(".png",), bits=(8, 16), max_side=1_000_000),
        "TIFF": Capability(suffixes=(".tif", ".tiff"), bits=(8, 16), max_side=2**31 - 1),
        # The format allows 65,535; libjpeg neither writes nor reads more than this.
        "JPEG": Capability(suffixes=(".jpg", ".jpeg"), alpha=False, lossless=False, max_side=65_500),
        "WEBP": Capability(suffixes=(".webp",), gray=False, lossless=False, max_side=16_383),
        # AV1 allows 65,536; libavif's decoder refuses more than this.
        "AVIF": Capability(suffixes=(".avif",), lossless=False, max_side=32_768, max_pixels=2**28),
        "GIF": Capability(suffixes=(".gif",), icc=False, exif=False, lossless=False, max_side=65_535),
        "BMP": Capability(
            suffixes=(".bmp",), alpha=False, icc=False, exif=False, max_side=2**31 - 1, max_bytes=2**32 - 1
        ),
    }
)


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


def sniff(data: bytes) -> Format | None:
    """Detect the format of a file from its first bytes; None if it is unknown."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp" and _is_avif(data):
        return "AVIF"
    return next((name for magic, name in _MAGIC.items() if data.startswith(magic)), None)


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
    }
)


def _is_avif(data: bytes) -> bool:
    """The first box of an ISO media file lists four-letter brands: the major one, a version, the compatible ones."""
    box = data[8 : min(int.from_bytes(data[:4], "big"), 256)]
    brands = {box[i : i + 4] for i in range(0, len(box), 4) if i != 4}
    return bool(brands & {b"avif", b"avis"})


def _excess(name: Format, width: int, height: int, channels: int, bits: int) -> str | None:
    """Describe the limit that a picture exceeds; None if it fits."""
    capability = CAPABILITIES[name]
    if max(width, height) > capability.max_side:
        return f"{capability.max_side:,} pixels per side"
    if capability.max_pixels is not None and width * height > capability.max_pixels:
        return f"{capability.max_pixels:,} pixels"
    # Includes a header, a palette and rows padded to whole words; no format with a limit in bytes stores alpha.
    size = (width * (1 if channels <= 2 else 3) * min(bits, max(capability.bits)) // 8 + 3) * height + 2048
    if capability.max_bytes is not None and size > capability.max_bytes:
        return f"{capability.max_bytes:,} bytes"
    return None
