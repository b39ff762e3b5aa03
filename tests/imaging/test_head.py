"""The header gives the size of the decoded picture."""

import struct
from pathlib import Path

import pytest
from PIL import Image

from imaging.making import any_format, camera_exif, noise, png, tiff
from srno.imaging.formats import READ_FORMATS
from srno.imaging.head import read_head
from srno.imaging.read import read

WITHOUT_EXIF = ("BMP", "GIF", "JP2", "PNM", "TGA", "ICO", "JXL")


@pytest.mark.parametrize("kind", READ_FORMATS)
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_size_and_format_are_those_of_the_decoded_picture(tmp_path: Path, kind: str, orientation: int):
    exif = {} if kind in WITHOUT_EXIF else {"exif": camera_exif(orientation, sizes=kind != "TIFF").tobytes()}
    data = any_format(Image.fromarray(noise(24, 32, 3)), kind, **exif)
    path = tmp_path / "photo[1,2].bin"  # suffix and brackets have no effect
    path.write_bytes(data)
    picture = read(path)
    for source in (path, data):
        head = read_head(source)
        assert head is not None
        assert (head.format, head.size) == (picture.format, picture.size)


@pytest.mark.parametrize("data", [png(noise(5, 7, 4, bits=16)), tiff(noise(5, 7, 3, bits=16), photometric="rgb")])
def test_the_size_of_16_bit_files(data: bytes):
    head = read_head(data)
    assert head is not None
    assert head.size == (7, 5)


def test_the_size_in_the_header_is_returned_without_decoding():
    head = read_head(png(noise(2, 2, 3), size=(60_000, 60_000)))
    assert head is not None
    assert head.size == (60_000, 60_000)


@pytest.mark.parametrize("data", [b"", b"some text", b"\x89PNG\r\n\x1a\n", b"GIF89a" + struct.pack("<H", 3)])
def test_an_unreadable_header_gives_none(tmp_path: Path, data: bytes):
    (tmp_path / "x.png").write_bytes(data)
    assert read_head(tmp_path / "x.png") is None
    assert read_head(data) is None
    assert read_head(tmp_path / "gone.png") is None
    assert read_head(tmp_path) is None
