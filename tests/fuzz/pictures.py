"""Picture files of every format: valid ones to start from, and the reader."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from imaging.making import CMYK, P3, any_format, camera_exif, encode, heif, jxl, noise, png, tiff

MAX_PIXELS = 1_000_000
"""Larger pictures are refused, so that memory is a matter of the decoders and not of the sizes."""
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "AVIF", "JXL", "JP2", "PNM", "TGA", "ICO", "HEIF")


def read_picture(data: bytes) -> None:
    """Read a file as `srno upscale` does: header, picture, frames; then write it with its metadata."""
    from srno.imaging.frames import open_frames
    from srno.imaging.head import read_head
    from srno.imaging.read import read
    from srno.imaging.write import write

    read_head(data)
    picture = read(data, max_pixels=MAX_PIXELS)
    if picture.size[0] * picture.size[1] <= 10_000:
        write(picture, io.BytesIO(), format="PNG")
        write(picture, io.BytesIO(), format="JPEG")
    frames = open_frames(data, max_pixels=MAX_PIXELS)
    for number, _ in enumerate(frames or ()):
        if number == 5:
            break


def _photo() -> Image.Image:
    y, x = np.mgrid[0:12, 0:16]
    return Image.fromarray(np.stack([x * 16, y * 20, 255 - x * 9], axis=-1).astype(np.uint8))


def pictures(name: str) -> list[bytes]:
    """Small files of a format with what it can hold: alpha, 16 bits, frames, pages and metadata."""
    photo, frames = _photo(), [Image.fromarray(noise(8, 8, 3, seed=seed)) for seed in range(3)]
    animated = {"save_all": True, "append_images": frames[1:], "duration": 40}
    moving = encode(frames[0], name, **animated) if name in ("PNG", "WEBP", "GIF", "TIFF") else b""
    ink = photo.convert("CMYK")
    about: dict[str, Any] = {"exif": camera_exif(6), "icc_profile": P3}
    files: dict[str, Callable[[], list[bytes]]] = {
        "PNG": lambda: [png(noise(4, 5, 4, bits=16)), encode(photo, "PNG", **about), moving],
        "JPEG": lambda: [encode(photo, "JPEG", comment=b"text", **about), encode(ink, "JPEG", icc_profile=CMYK)],
        "WEBP": lambda: [encode(photo, "WEBP", **about), moving],
        "GIF": lambda: [encode(photo.quantize(8), "GIF"), moving],
        "TIFF": lambda: [
            tiff(noise(5, 6, 3, bits=16), photometric="rgb"),
            encode(photo, "TIFF", compression="tiff_lzw"),
            moving,
        ],
        "HEIF": lambda: [
            any_format(photo, "HEIF"),
            heif(noise(6, 8, 4), exif=camera_exif(6).tobytes()),
            heif(noise(6, 8, 3, bits=10), bits=10),
        ],
        "JXL": lambda: [any_format(photo, "JXL"), jxl(noise(5, 6, 4), exif=camera_exif(6).tobytes(), xmp=b"<a/>")],
        "AVIF": lambda: [encode(photo, "AVIF", **about), encode(photo.convert("LA"), "AVIF")],
        "PNM": lambda: [encode(photo, "PPM"), b"P5 3 2 65535\n" + bytes(12), b"P1 # c\n2 2 1 0 0 1", b"P2 2 1 9 5 9"],
    }
    return files[name]() if name in files else [any_format(photo, name)]
