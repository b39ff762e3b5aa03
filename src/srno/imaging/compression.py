"""How strongly a file is compressed, read from the file without decoding it."""

from collections.abc import Iterator, Sequence

from srno.imaging import jpeg
from srno.imaging.formats import Format
from srno.imaging.picture import Codec, Compression

_STANDARD_LUMA_SUM = 3688
"""Sum of the quantisation table for luma in annex K of the JPEG standard, which is quality 50."""


def compression_of(data: bytes, kind: Format | None, size: tuple[int, int]) -> Compression | None:
    """Read the compression of a file; None if it is lossless or unknown. `size` is (width, height).

    JPEG stores its quantisation tables. From the others only the number of bytes is read, which depends on the content
    too: flat pictures seem to be compressed more than they are.
    """
    if kind == "JPEG":
        return jpeg_compression(jpeg.luma_table_of(data))
    if kind == "WEBP":
        coded = sum(length for name, length in _webp_chunks(data) if name == b"VP8 ")
    elif kind == "AVIF" or kind == "HEIF":
        coded = len(data)
    else:
        return None
    names: dict[Format, Codec] = {"WEBP": "webp", "AVIF": "avif", "HEIF": "heif"}
    return Compression(names[kind], 8 * coded / (size[0] * size[1])) if coded else None


def jpeg_compression(luma_table: Sequence[int] | None) -> Compression | None:
    """The quality whose standard table has the same sum as this one; cameras use other tables of their own."""
    if luma_table is None or len(luma_table) != 64:
        return None
    percent = 100 * sum(luma_table) / _STANDARD_LUMA_SUM
    quality = 100 - percent / 2 if percent <= 100 else 5000 / percent
    return Compression("jpeg", max(1.0, quality))


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield name and length of each chunk; frames of animations are inside of other chunks and are not found."""
    at = 12
    while at + 8 <= len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        yield data[at : at + 4], length
        at += 8 + length + length % 2
