"""The command as a user types it, and files in all formats, good and bad."""

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import pyvips
from PIL import Image

from command_runs import run
from imaging.making import CMYK, P3, camera_exif, encode, gray_profile, iccp, noise, png, tiff


def call(capsys: pytest.CaptureFixture[str], *tokens: str | Path) -> tuple[int, str, str]:
    """`srno upscale TOKENS` in this process: exit code, stdout, stderr."""
    return run(capsys, "upscale", *tokens)


def spawn(*tokens: str | Path, **options: object) -> subprocess.CompletedProcess[bytes]:
    """The same in a separate process."""
    command = [sys.executable, "-m", "srno", "upscale", *(str(token) for token in tokens)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    settings = {"capture_output": True, "timeout": 120, "check": False, "env": environment, **options}
    return subprocess.run(command, **settings)  # type: ignore[call-overload]


@dataclass(frozen=True)
class GoodFile:
    """A picture file, and the expected result at ×2."""

    data: bytes
    size: tuple[int, int]
    """Size of the output."""
    output: str
    channels: int
    bits: int = 8
    icc: bytes | None = None
    exif: bool = False


def _photo(width: int = 14, height: int = 9) -> Image.Image:
    """Smooth colours, so that compression changes little."""
    y, x = np.mgrid[0:height, 0:width]
    values = np.stack([x * 255 / max(width - 1, 1), y * 255 / max(height - 1, 1), 255 - x * 90 / width], axis=-1)
    return Image.fromarray(values.round().astype(np.uint8))


def _palette() -> bytes:
    image = Image.fromarray(noise(9, 14) % 7)
    image.putpalette(bytes(noise(24)))
    return encode(image, "PNG", transparency=bytes([0, 99, *[255] * 5]))


def _animation() -> bytes:
    frames = [_photo().quantize(8), Image.new("P", (14, 9)), Image.new("P", (14, 9))]
    return encode(frames[0], "GIF", save_all=True, append_images=frames[1:])


def _deep_avif() -> bytes:
    image = pyvips.Image.new_from_array(noise(9, 14, 3, bits=16), interpretation="rgb16")
    return image.heifsave_buffer(compression="av1", bitdepth=12, effort=0)


def _ramp() -> np.ndarray[tuple[int, int, int], np.dtype[np.uint16]]:
    """Levels between the 8-bit ones, with alpha."""
    line = np.linspace(20_000, 24_000, 600).round().astype(np.uint16)
    return np.broadcast_to(np.stack([line, line[::-1], line, 30_000 + line], axis=-1), (4, 600, 4))


GAMMA = gray_profile(2.2)

GOOD_FILES: dict[str, GoodFile] = {
    "deep-rgba.png": GoodFile(png(_ramp(), iccp(P3)), (1200, 8), "deep-rgba_2x.png", 4, 16, P3),
    "deep.tif": GoodFile(tiff(noise(9, 14, 3, bits=16), photometric="rgb"), (28, 18), "deep_2x.tif", 3, 16),
    "deep-gray.png": GoodFile(png(noise(9, 14, 1, bits=16)), (28, 18), "deep-gray_2x.png", 1, 16),
    "gray-alpha.png": GoodFile(png(noise(9, 14, 2)), (28, 18), "gray-alpha_2x.png", 2),
    "gray.jpg": GoodFile(
        encode(_photo().convert("L"), "JPEG", icc_profile=GAMMA), (28, 18), "gray_2x.jpg", 1, icc=GAMMA
    ),
    "bilevel.png": GoodFile(encode(_photo().convert("1"), "PNG"), (28, 18), "bilevel_2x.png", 1),
    "cmyk.jpg": GoodFile(
        encode(_photo().convert("CMYK"), "JPEG", icc_profile=CMYK, exif=camera_exif()), (28, 18), "cmyk_2x.jpg", 3,
        icc=b"sRGB", exif=True,
    ),
    "palette.png": GoodFile(_palette(), (28, 18), "palette_2x.png", 4),
    "turned.JPEG": GoodFile(
        encode(_photo(), "JPEG", exif=camera_exif(6), icc_profile=P3), (18, 28), "turned_2x.JPEG", 3, icc=P3, exif=True
    ),
    "turned.tiff": GoodFile(
        encode(_photo(), "TIFF", exif=camera_exif(8, sizes=False)), (18, 28), "turned_2x.tiff", 3, exif=True
    ),
    "animation.gif": GoodFile(_animation(), (28, 18), "animation_2x.gif", 3),
    "soft.webp": GoodFile(
        encode(_photo(), "WEBP", lossless=True, exif=camera_exif(3), icc_profile=P3), (28, 18), "soft_2x.png", 3,
        icc=P3, exif=True,
    ),
    "plain.bmp": GoodFile(encode(_photo(), "BMP"), (28, 18), "plain_2x.png", 3),
    "small.avif": GoodFile(encode(_photo(), "AVIF", quality=95), (28, 18), "small_2x.png", 3),
    "deep.avif": GoodFile(_deep_avif(), (28, 18), "deep_2x.png", 3, 16),
    "one.png": GoodFile(png(noise(1, 1, 4)), (2, 2), "one_2x.png", 4),
    "tall.png": GoodFile(png(noise(5000, 1, 3)), (2, 10_000), "tall_2x.png", 3),
    "really.png": GoodFile(encode(_photo(), "JPEG", quality=95), (28, 18), "really_2x.jpg", 3),
    "[good] näme .png": GoodFile(png(noise(9, 14, 3)), (28, 18), "[good] näme _2x.png", 3),
}  # fmt: skip

BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty.png": (b"", "empty"),
    "text.png": (b"This is a text and not a picture.\n" * 20, "not a picture"),
    "cut.jpg": (encode(_photo(300, 200), "JPEG")[:2000], "damaged or cut short"),
    "cut.png": (png(noise(90, 90, 3))[:9000], "damaged or cut short"),
    "huge.png": (png(noise(2, 2, 3), size=(60_000, 60_000)), "60000×60000"),
}
"""Files that cannot be read, and part of the error."""


def pillow(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image
