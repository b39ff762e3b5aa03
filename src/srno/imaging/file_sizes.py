"""How many bytes the file of an enlarged picture takes, before it is made: likely, and at least.

Nobody knows it before the file is compressed. The likely size is that of photographs; only what does not fit by the
least size need not be tried.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from srno.imaging.formats import Format, capability_of
from srno.machine import describe_bytes

ENLARGED_SHARES: Mapping[Format, float] = MappingProxyType(
    {
        "PNG": 0.54,
        "TIFF": 0.56,
        "JPEG": 0.16,
        "WEBP": 0.1,
        "AVIF": 0.13,
        "JXL": 0.1,
        "JP2": 0.47,
        "GIF": 0.27,
        "ICO": 0.54,
    }
)
"""Bytes of a file for each byte of samples: the mean of photographs at ×2 and the default quality; others take all.

Measured by tests/imaging/measure_file_sizes.py on nine pictures of Set5, Set14 and B100, as are the numbers below.
"""
DEEP_SHARE = 0.87
"""The same for 16 bits, at any scale: the lower ones hardly compress."""
SOURCE_SHARES: Mapping[Format, float] = MappingProxyType(
    {
        "PNG": 0.58,
        "TIFF": 0.58,
        "GIF": 0.31,
        "JPEG": 0.078,
        "WEBP": 0.073,
        "AVIF": 0.073,
        "HEIF": 0.073,
        "JXL": 0.073,
        "JP2": 0.073,
    }
)
"""The same of sources: JPEG with quality 75, WebP with 80; those after it are taken to be like it."""
SCALE_EXPONENT = 0.5
"""Shares fall with this power of the scale: pictures that are enlarged more are smoother."""
QUALITY_EXPONENT = 4.4
"""Lossy files grow with this power of the quality (JPEG, from 75 to 95)."""
LEAST_SHARE = 0.3
"""Share of the likely size that results take at least: none of 135 results of nine photographs took less than 0.36."""
FLAT_DETAIL = 0.01
"""Detail of drawings and screenshots, which sources without compression may be."""


@dataclass(frozen=True)
class Estimate:
    """Bytes that results take: at least, and likely."""

    least: int = 0
    likely: int = 0

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.least + other.least, self.likely + other.likely)

    def __str__(self) -> str:
        likely, least = describe_bytes(self.likely), describe_bytes(self.least)
        return f"about {likely}" if likely == least else f"about {likely}, at least {least}"


def estimate_from(photograph: int, detail: float | None) -> Estimate:
    """Estimate a compressed result from its bytes if it were a photograph, and the detail of its source."""
    likely = photograph if detail is None else math.ceil(photograph * detail)
    return Estimate(math.ceil(LEAST_SHARE * (photograph * FLAT_DETAIL if detail is None else likely)), likely)


def likely_bytes(
    kind: Format, size: tuple[int, int], channels: int, bits: int, *, scale: float, quality: int | None = None
) -> int:
    """The bytes of a photograph that is enlarged by `scale` to `size`, (width, height)."""
    stored = capability_of(kind)
    if not stored.alpha:
        channels = 1 if channels < 3 else 3
    depth = min(bits, max(stored.bits))
    share = ENLARGED_SHARES.get(kind, 1.0)
    if quality is not None and not stored.lossless and kind != "GIF":
        lossless = quality == 100 and kind in ("WEBP", "JXL")
        share = ENLARGED_SHARES["PNG"] if lossless else share * (quality / 95) ** QUALITY_EXPONENT
    if share < 1:
        share = DEEP_SHARE if depth == 16 else share * (2 / max(scale, 1.0)) ** SCALE_EXPONENT
    return math.ceil(size[0] * size[1] * channels * depth / 8 * min(share, 1.0))


def detail_of(kind: Format, file_bytes: int, sample_bytes: int) -> float | None:
    """Detail of a source from 0 to 1, that of photographs, by its bytes; None if it is stored without compression."""
    usual = SOURCE_SHARES.get(kind)
    share = file_bytes / max(1, sample_bytes)
    if usual is None or (kind == "TIFF" and share > 0.95):
        return None
    return min(1.0, share / usual)
