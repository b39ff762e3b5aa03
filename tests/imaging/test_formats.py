"""The table of formats matches the installed encoders and decoders."""

import io

import numpy as np
import pytest
import pyvips
from making import encode, noise, tiff
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.formats import CAPABILITIES, Format, check_limits, sniff
from srno.imaging.picture import Picture
from srno.imaging.read import read
from srno.imaging.write import write


def test_formats_are_detected_by_content() -> None:
    image = Image.fromarray(noise(9, 14, 3))
    for name in CAPABILITIES:
        assert sniff(encode(image, name)) == name
    assert sniff(tiff(noise(9, 14), bigtiff=True)) == "TIFF"
    assert sniff(tiff(noise(9, 14), byteorder=">")) == "TIFF"
    for unknown in (b"", b"RIFF1234WAVE", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", b"<svg>", b"%PDF-1.7"):
        assert sniff(unknown) is None


@pytest.mark.parametrize("name", ["JPEG", "WEBP", "AVIF", "GIF"])
def test_the_longest_side_can_be_written_and_read(name: Format) -> None:
    longest = CAPABILITIES[name].max_side
    stream = io.BytesIO()
    write(Picture(colour=np.zeros((1, longest, 1), np.uint8)), stream, format=name, quality=50)
    assert read(stream.getvalue()).size == (longest, 1)
    assert Image.open(stream).size == (longest, 1)


@pytest.mark.parametrize("name", ["JPEG", "WEBP", "AVIF", "GIF", "PNG"])
def test_one_pixel_more_is_refused_before_encoding(name: Format, capfd: pytest.CaptureFixture[str]) -> None:
    longest = CAPABILITIES[name].max_side
    stream = io.BytesIO()
    with pytest.raises(
        SRNOError, match=rf"^{name} holds at most {longest:,} pixels per side, not 1×{longest + 1}; .*TIFF"
    ):
        write(Picture(colour=np.zeros((longest + 1, 1, 1), np.uint8)), stream, format=name)
    assert stream.getvalue() == b""
    assert capfd.readouterr().err == ""


def test_the_error_names_only_formats_that_can_store_the_picture() -> None:
    with pytest.raises(SRNOError, match=r"these would work: PNG, TIFF$"):
        check_limits("WEBP", 20_000, 100, 3, 16)
    with pytest.raises(SRNOError, match=r"these would work: PNG, TIFF, AVIF, GIF$"):
        check_limits("WEBP", 20_000, 100, 4, 8)
    with pytest.raises(SRNOError, match=r"these would work: PNG, TIFF, JPEG, GIF, BMP$"):
        check_limits("AVIF", 30_000, 30_000, 3, 8)
    with pytest.raises(SRNOError, match="no format would work"):
        check_limits("JPEG", 2**31, 1, 3, 8)


def test_limits_of_bytes_and_pixels() -> None:
    check_limits("BMP", 30_000, 30_000, 3, 8)
    with pytest.raises(SRNOError, match="BMP holds at most 4,294,967,295 bytes"):
        check_limits("BMP", 40_000, 40_000, 3, 8)
    check_limits("BMP", 40_000, 40_000, 1, 16)
    check_limits("AVIF", 16_384, 16_384, 3, 8)
    with pytest.raises(SRNOError, match="AVIF holds at most 268,435,456 pixels"):
        check_limits("AVIF", 16_385, 16_384, 3, 8)
    check_limits("TIFF", 300_000, 300_000, 4, 16)


def test_suffixes_are_unique() -> None:
    suffixes = [suffix for capability in CAPABILITIES.values() for suffix in capability.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in suffixes)


def test_libvips_reads_the_longest_png() -> None:
    stream = io.BytesIO()
    write(Picture(colour=np.zeros((1, 1_000_000, 1), np.uint8)), stream, format="PNG")
    assert pyvips.Image.new_from_buffer(stream.getvalue(), "").width == 1_000_000
