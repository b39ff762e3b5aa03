"""Samples of small tiles as compressed bytes."""

import gzip
import io
import zlib

import numpy as np

from srno.errors import require
from srno.gigapixel.container import Compression
from srno.imaging.picture import Samples, split_samples
from srno.imaging.pillow import to_pillow

DEFLATE_LEVEL = 6
ZSTD_LEVEL = 3
FULL_COLOUR_QUALITY = 90
"""Quality from which JPEG keeps the full resolution of colour."""


def difference(samples: Samples) -> Samples:
    """TIFF's horizontal predictor: each sample minus the one to its left."""
    out = samples.copy()
    out[:, 1:] -= samples[:, :-1]
    return out


def compress(data: bytes, compression: Compression) -> bytes:
    """Compress raw bytes without loss, as TIFF stores them."""
    if compression == "deflate":
        return zlib.compress(data, DEFLATE_LEVEL)
    return compress_zstd(data) if compression == "zstd" else data


def compress_gzip(data: bytes) -> bytes:
    """The same bytes whenever they are made: the time is left out."""
    return gzip.compress(data, DEFLATE_LEVEL, mtime=0)


def compress_zstd(data: bytes) -> bytes:
    """Compress by zstd, which comes with the package zarr."""
    return bytes(require("numcodecs.zstd", "cluster").compress(data, ZSTD_LEVEL))


def encode_jpeg(samples: Samples, quality: int, icc: bytes | None = None, *, keep_rgb: bool = False) -> bytes:
    """Encode gray or RGB samples of 8 bits; with `keep_rgb` colours are not converted to YCbCr."""
    buffer = io.BytesIO()
    subsampling = "4:4:4" if quality >= FULL_COLOUR_QUALITY else "4:2:0"
    options: dict[str, object] = {} if icc is None else {"icc_profile": icc}
    if samples.shape[2] == 3:
        options |= {"keep_rgb": True} if keep_rgb else {"subsampling": subsampling}
    to_pillow(split_samples(samples)).save(buffer, "JPEG", quality=quality, **options)
    return buffer.getvalue()


def encode_png(samples: Samples, icc: bytes | None = None) -> bytes:
    """Encode samples of 8 bits."""
    buffer = io.BytesIO()
    to_pillow(split_samples(np.ascontiguousarray(samples))).save(buffer, "PNG", icc_profile=icc)
    return buffer.getvalue()
