"""The table of formats matches the installed encoders and decoders."""

import io

import numpy as np
import pytest
import pyvips
from making import any_format, noise, tiff
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.formats import CAPABILITIES, READ_FORMATS, READ_SUFFIXES, Format, check_limits, sniff
from srno.imaging.picture import Picture
from srno.imaging.read import read
from srno.imaging.write import write


def test_formats_are_detected_by_content() -> None:
    image = Image.fromarray(noise(9, 14, 3))
    for name in READ_FORMATS:
        assert sniff(any_format(image, name)) == name
    assert sniff(tiff(noise(9, 14), bigtiff=True)) == "TIFF"
    assert sniff(tiff(noise(9, 14), byteorder=">")) == "TIFF"


@pytest.mark.parametrize(
    "start",
    [
        *(b"", b"RIFF1234WAVE", b"<svg>", b"%PDF-1.7", b"P8 is no kind of PNM"),
        b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom",
        b"\0\0\0\x18ftypqt  \0\0\0\0qt  ",
        # Like TGA at first sight: a cursor, MPEG films, a font, zeros.
        b"\0\0\2\0\1\0" + bytes(60),
        b"\0\0\1\xba" + bytes(60),
        b"\0\0\1\xb3" + bytes(60),
        b"\0\1\0\0\0\x12" + bytes(60),
        bytes(64),
    ],
)
def test_other_files_are_not_taken_for_pictures(start: bytes) -> None:
    assert sniff(start) is None


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "LA"])
@pytest.mark.parametrize("rle", [False, True])
def test_every_kind_of_tga_is_detected(mode: str, rle: bool) -> None:
    image = Image.fromarray(noise(9, 14, 3)).convert(mode)
    assert sniff(any_format(image, "TGA", **({"compression": "tga_rle"} if rle else {}))) == "TGA"


def test_random_bytes_are_not_taken_for_tga() -> None:
    rng = np.random.default_rng(0)
    found = [sniff(rng.bytes(64)) for _ in range(20_000)]
    assert found.count("TGA") == 0


@pytest.mark.parametrize("name", ["JPEG", "WEBP", "AVIF", "GIF", "JXL", "TGA", "ICO"])
def test_the_longest_side_can_be_written_and_read(name: Format) -> None:
    longest = CAPABILITIES[name].max_side
    stream = io.BytesIO()
    write(Picture(colour=np.zeros((1, longest, 1), np.uint8)), stream, format=name, quality=50)
    assert read(stream.getvalue()).size == (longest, 1)
    if name != "JXL":  # Pillow alone does not read it
        assert Image.open(stream).size == (longest, 1)


@pytest.mark.parametrize("name", ["JPEG", "WEBP", "AVIF", "GIF", "PNG", "JXL", "TGA", "ICO"])
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
    with pytest.raises(SRNOError, match=r"these would work: PNG, TIFF, PNM$"):
        check_limits("WEBP", 20_000, 100, 3, 16)
    with pytest.raises(SRNOError, match=r"these would work: PNG, TIFF, AVIF, GIF, JXL, JP2, TGA$"):
        check_limits("WEBP", 20_000, 100, 4, 8)
    with pytest.raises(SRNOError, match=r"these would work: PNG, TIFF, JPEG, GIF, BMP, JP2, PNM, TGA$"):
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
    suffixes = [
        suffix for capability in CAPABILITIES.values() for suffix in (*capability.suffixes, *capability.read_suffixes)
    ]
    assert len(set(suffixes)) == len(suffixes)
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in suffixes)
    assert set(READ_SUFFIXES) - set(suffixes) == {".heic", ".heif", ".hif"}


def test_libvips_reads_the_longest_png() -> None:
    stream = io.BytesIO()
    write(Picture(colour=np.zeros((1, 1_000_000, 1), np.uint8)), stream, format="PNG")
    assert pyvips.Image.new_from_buffer(stream.getvalue(), "").width == 1_000_000
