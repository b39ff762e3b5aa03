"""JPEG XL: samples, header, metadata, and what the decoder cannot do."""

import io
import sys
from typing import Any

import numpy as np
import pillow_jxl
import pytest
from making import CAMERA, MAKE, P3, XMP, camera_exif, encode, jxl, noise
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.box_formats import JxlHeader, read_jxl_header
from srno.imaging.picture import Picture
from srno.imaging.read import read
from srno.imaging.write import write

Encoder: Any = vars(pillow_jxl)["Encoder"]
"""Its stub lacks the arguments."""


def written(picture: Picture, **options: Any) -> bytes:
    stream = io.BytesIO()
    write(picture, stream, format="JXL", **options)
    return stream.getvalue()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_lossless_files_round_trip(channels: int) -> None:
    samples = noise(9, 14, channels)
    assert np.array_equal(read(jxl(samples)).samples(), samples)
    colours = 1 if channels < 3 else 3
    alpha = samples[..., colours] if channels in (2, 4) else None
    back = read(written(Picture(colour=samples[..., :colours], alpha=alpha), quality=100))
    assert np.array_equal(back.samples(), samples)
    assert (back.format, back.bits, back.icc, back.notes) == ("JXL", 8, None, ())


def test_16_bits_of_gray_are_read() -> None:
    samples = noise(9, 14, 1, bits=16)
    picture = read(jxl(samples))
    assert np.array_equal(picture.samples(), samples)
    assert picture.notes == ()


@pytest.mark.parametrize(
    "size", [(1, 1), (8, 8), (14, 9), (9, 14), (256, 256), (300, 257), (48, 40), (1200, 1000), (70_000, 3)]
)
@pytest.mark.parametrize("container", [False, True])
def test_the_header_gives_the_size(size: tuple[int, int], container: bool) -> None:
    encoder = Encoder(mode="L", lossless=True, quality=100.0, effort=1, use_container=container)
    blocks = {"exif": None, "jumb": None, "xmp": None, "compress": False}
    data = encoder(bytes(size[0] * size[1]), *size, jpeg_encode=False, **blocks)
    assert data.startswith(b"\xff\x0a") != container
    assert read_jxl_header(data) == JxlHeader(size)


def bare_header(*fields: tuple[int, int]) -> bytes:
    """A codestream of 16×8 pixels and numbers of so many bits, the lowest first."""
    value = at = 0
    for number, bits in ((1, 1), (0, 5), (0, 3), (1, 5), *fields):
        value, at = value | number << at, at + bits
    return b"\xff\x0a" + value.to_bytes(at // 8 + 8, "little")


def test_orientation_depth_and_animation_are_read_from_the_header() -> None:
    assert read_jxl_header(bare_header((1, 1))) == JxlHeader((16, 8))
    rotated = ((0, 1), (1, 1), (5, 3), (0, 1), (0, 1), (0, 1), (0, 1), (0, 2))
    assert read_jxl_header(bare_header(*rotated)) == JxlHeader((8, 16))
    for code, more, depth in ((1, (), 10), (2, (), 12), (3, ((15, 6),), 16)):
        assert read_jxl_header(bare_header((0, 1), (0, 1), (0, 1), (code, 2), *more)).bits == depth
    moving = ((0, 1), (1, 1), (0, 3), (0, 1), (0, 1), (1, 1))
    assert read_jxl_header(bare_header(*moving)) == JxlHeader((16, 8), animated=True)
    with pytest.raises(SRNOError, match=r"^the picture: an animation in JPEG XL is not supported; convert it"):
        read(bare_header(*moving))


def test_a_file_made_from_jpeg_gives_the_samples_of_that_jpeg() -> None:
    photo = encode(Image.fromarray(noise(9, 14, 3)), "JPEG", exif=camera_exif(6), icc_profile=P3, comment=b"a note")
    data = Encoder(mode="RGB", lossless=True, quality=100.0)(photo, 14, 9, jpeg_encode=True)
    picture, original = read(data), read(photo)
    assert np.array_equal(picture.samples(), original.samples())
    assert (picture.size, picture.format) == ((9, 14), "JXL")
    assert (picture.icc, picture.exif, picture.comments) == (P3, original.exif, (b"a note",))


def test_exif_and_xmp_are_kept() -> None:
    data = written(Picture(colour=noise(9, 14, 3), exif=CAMERA, xmp=b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"))
    back = read(data)
    assert (back.exif, back.xmp) == (CAMERA, b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>")
    image = Image.open(io.BytesIO(data))  # by the plugin
    assert image.getexif()[MAKE] == "Canon"
    cleaned = read(jxl(noise(9, 14, 3), xmp=XMP)).xmp
    assert cleaned is not None
    assert b"ImageWidth" not in cleaned


@pytest.mark.parametrize("skipped", [b"", bytes(4), b"\0\0\0\6Exif\0\0"])
def test_exif_is_found_after_the_bytes_to_skip(skipped: bytes) -> None:
    """The plugin, called by Pillow, leaves out the number of these bytes, which the format asks for."""
    assert CAMERA is not None
    encoder = Encoder(mode="RGB", lossless=True)
    blocks = {"exif": skipped + CAMERA, "jumb": None, "xmp": None, "compress": False}
    assert read(encoder(noise(9, 14, 3).tobytes(), 14, 9, jpeg_encode=False, **blocks)).exif == CAMERA


def test_compressed_metadata_is_noted() -> None:
    picture = read(jxl(noise(9, 14, 3), xmp=XMP, compress=True))
    assert picture.xmp is None
    assert picture.notes == ("EXIF and XMP left out: they are compressed by Brotli",)


def test_the_profile_is_applied_since_the_encoder_takes_none() -> None:
    stream = io.BytesIO()
    notes = write(Picture(colour=noise(9, 14, 3), icc=P3), stream, format="JXL").notes
    assert notes == ("colours converted to sRGB, since the profile is left out",)


def test_higher_quality_gives_larger_files() -> None:
    picture = Picture(colour=noise(32, 32, 3))
    sizes = [len(written(picture, quality=quality)) for quality in (10, 60, 95)]
    assert sizes[0] < sizes[1] < sizes[2]


def test_without_the_package_the_error_is_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = jxl(noise(9, 14, 3))
    monkeypatch.setitem(sys.modules, "pillow_jxl", None)
    command = r"pillow_jxl is not installed; install it with: pip install 'srno\[jxl\]'$"
    with pytest.raises(SRNOError, match=r"^a\.jxl: " + command):
        read(data, name="a.jxl")
    stream = io.BytesIO()
    with pytest.raises(SRNOError, match="^" + command):
        write(Picture(colour=noise(9, 14, 3)), stream, format="JXL")
    assert stream.getvalue() == b""
