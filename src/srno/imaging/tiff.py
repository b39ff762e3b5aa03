"""TIFF: 8 or 16 bits, deflated; tiles for large pictures, BigTIFF beyond 4 GB; EXIF in its directories."""

import io
from typing import BinaryIO

import tifffile

from srno.imaging import ifd
from srno.imaging.picture import Picture

_MIN_TILED_PIXELS = 1 << 24
"""Pixels from which a picture is tiled, so that viewers need not inflate whole rows."""
_MAX_CLASSIC_BYTES = 2**32 - 2**25
"""Bytes of samples above which 4-byte offsets may not suffice; incompressible data grows a little."""


def needs_big(width: int, height: int, channels: int, bits: int) -> bool:
    """Whether a picture of this size needs BigTIFF's 8-byte offsets."""
    return width * height * channels * bits // 8 > _MAX_CLASSIC_BYTES


def write_tiff(picture: Picture, stream: BinaryIO, *, big: bool) -> None:
    """Write to a stream that can seek and be read."""
    width, height = picture.size
    exif = None if picture.exif is None else ifd.read_header(io.BytesIO(picture.exif))
    samples = picture.samples()
    tifffile.imwrite(
        stream,
        samples[..., 0] if samples.shape[2] == 1 else samples,
        # EXIF values are copied unchanged, so the file uses their byte order.
        byteorder="<" if exif is None else exif[0].order,
        bigtiff=big,
        photometric="minisblack" if picture.colour.shape[2] == 1 else "rgb",
        planarconfig="contig" if samples.shape[2] > 1 else None,
        extrasamples=None if picture.alpha is None else ["unassalpha"],
        tile=(512, 512) if width * height >= _MIN_TILED_PIXELS else None,
        compression="zlib",
        predictor=True,
        iccprofile=picture.icc,
        resolution=picture.dpi,
        resolutionunit=None if picture.dpi is None else "inch",
        software=False,
        metadata=None,
    )
    if exif is not None and picture.exif is not None:
        layout, offset = exif
        block = io.BytesIO(picture.exif)
        _add_entries(stream, ifd.read_directory(block, layout, offset, _want_all, byte_budget=len(picture.exif)))


def _add_entries(stream: BinaryIO, exif: ifd.Directory) -> None:
    """Replace the first directory of a finished file by one at the end that also has the entries of `exif`."""
    header = ifd.read_header(stream)
    assert header is not None
    layout, offset = header
    end = stream.seek(0, io.SEEK_END)
    own = ifd.read_directory(stream, layout, offset, _want_all, byte_budget=end)
    at, packed = ifd.pack({**exif, **own}, layout, end)
    stream.seek(end)
    stream.write(packed)
    stream.seek(len(layout.header))
    stream.write(layout.pointer.pack(at))


def _want_all(_parent: int, _tag: int) -> bool:
    return True
