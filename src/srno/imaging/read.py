"""Read picture files. The content determines the format; the size in the header is checked before decoding.

Pillow's file classes are called directly: `Image.open` would try fifty formats and apply a pixel limit that is global
to the process.
"""

import struct
from dataclasses import replace
from pathlib import Path

import pyvips
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.compression import compression_of
from srno.imaging.formats import READ_FORMATS, Format, check_claimed_size, sniff
from srno.imaging.heif import decode_heif
from srno.imaging.ico import decode_ico
from srno.imaging.jp2 import decode_jp2
from srno.imaging.jxl import decode_jxl, read_jxl_header
from srno.imaging.picture import Picture
from srno.imaging.pillow import decode_pillow
from srno.imaging.pnm import decode_pnm, read_pnm_header
from srno.imaging.raw import ADVICE, raw_name_of
from srno.imaging.vips import claimed_size, decode_vips

MAX_PIXELS = 500_000_000

DECODER_ERRORS = (
    pyvips.Error,
    Image.DecompressionBombError,
    SyntaxError,
    EOFError,
    ValueError,
    IndexError,
    OverflowError,
    AssertionError,
    struct.error,
)
"""What the decoders raise on damaged files, besides OSError."""


def read(source: Path | bytes, *, max_pixels: int = MAX_PIXELS, name: str | None = None) -> Picture:
    """Read a picture from a file or from bytes, upright; of an animation the first frame.

    A picture whose header claims more than `max_pixels` is refused before anything is decoded. Errors begin with
    `name`, by default the path.
    """
    name = name or (str(source) if isinstance(source, Path) else "the picture")
    try:
        return decode(source.read_bytes() if isinstance(source, Path) else source, name, max_pixels)
    except (*DECODER_ERRORS, OSError) as error:
        raise SRNOError(f"{name}: {explain(error)}") from None


def decode(data: bytes, name: str, max_pixels: int) -> Picture:
    """Decode the content of a file; the errors are those of the decoders, without the name."""
    kind = check_readable(data, name)
    picture = _decode(data, kind, name, max_pixels)
    return replace(picture, compression=compression_of(data, kind, picture.size))


def _decode(data: bytes, kind: Format, name: str, max_pixels: int) -> Picture:
    if kind == "HEIF":
        check_claimed_size(*claimed_size(data, kind), max_pixels)
        return decode_heif(data, max_pixels)
    if kind == "JXL":
        check_claimed_size(*read_jxl_header(data).size, max_pixels)
        decoded = decode_jxl(data)
        return decoded if isinstance(decoded, Picture) else replace(decode(decoded, name, max_pixels), format="JXL")
    if kind == "PNM":
        header = read_pnm_header(data)
        check_claimed_size(header.width, header.height, max_pixels)
        return decode_pnm(data, header)
    if kind == "JP2":
        return decode_jp2(data, max_pixels)
    if kind == "ICO":
        return decode_ico(data, max_pixels)
    if kind in ("BMP", "GIF", "TGA"):
        return decode_pillow(data, kind, max_pixels)
    return decode_vips(data, kind, max_pixels)


def check_readable(data: bytes, name: str) -> Format:
    """Return the format of a file; raise an SRNOError if it cannot be read."""
    if not data:
        raise SRNOError("the file is empty")
    raw = raw_name_of(data, Path(name).suffix)
    if raw is not None:
        raise SRNOError(f"{raw} is a camera's RAW format and is not read; {ADVICE}")
    kind = sniff(data)
    if kind is None:
        raise SRNOError(f"not a picture in a known format ({', '.join(READ_FORMATS)})")
    return kind


def explain(error: Exception) -> str:
    """Return the reason for a failure as one line: that of ours or of the system, or else that the file is damaged."""
    if isinstance(error, SRNOError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"damaged or cut short{_detail(error)}"


def _detail(error: Exception) -> str:
    """Return the last line of a decoder's message, in brackets; libvips prepends the messages of earlier errors."""
    text = error.detail if isinstance(error, pyvips.Error) else str(error)
    lines = [line.strip() for line in text.splitlines() if any(character.isalpha() for character in line)]
    return f" ({lines[-1]})" if lines else ""
