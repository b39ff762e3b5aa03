"""Camera RAW files are refused by name, and never read as their preview."""

import struct
from pathlib import Path

import numpy as np
import pytest
from making import encode, noise, raw_tiff, tiff
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.head import RAW_SUFFIXES, raw_name_of, read_head
from srno.imaging.read import read

PREVIEW = Image.fromarray(noise(24, 32, 3))
FILTER_ARRAY, LINEAR = (3, 32803), (3, 34892)
MAGICS = {
    "CR2": b"II*\0\x10\0\0\0CR\x02\0" + bytes(80),
    "CR3": b"\0\0\0\x18ftypcrx \0\0\0\1crx isom" + bytes(80),
    "CRW": b"II\x1a\0\0\0HEAPCCDR" + bytes(80),
    "ORF": b"IIRO\x08\0\0\0" + bytes(80),
    "RW2": b"IIU\0\x18\0\0\0" + bytes(80),
    "RAF": b"FUJIFILMCCD-RAW 0201" + bytes(80),
    "X3F": b"FOVb" + bytes(80),
    "MRW": b"\0MRM" + bytes(80),
    "IIQ": b"II*\0\x10\0\0\0IIII" + bytes(80),
}


def dng(**options: object) -> bytes:
    """A DNG as cameras write it: the first directory is a preview that every TIFF reader shows."""
    return tiff(np.asarray(PREVIEW), photometric="rgb", extratags=[(50706, 1, 4, b"\1\4\0\0", True)], **options)


@pytest.mark.parametrize("options", [{}, {"byteorder": ">"}, {"bigtiff": True}])
def test_a_dng_is_refused_although_its_preview_is_a_valid_tiff(options: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "photo.tif"
    path.write_bytes(dng(**options))
    with pytest.raises(
        SRNOError, match=r"photo\.tif: DNG is a camera's RAW format and is not read; convert it to TIFF"
    ):
        read(path)
    assert read_head(path) is None
    assert read(tiff(np.asarray(PREVIEW), photometric="rgb", **options)).size == (32, 24)


@pytest.mark.parametrize("name", MAGICS)
def test_formats_with_a_signature_are_named_under_any_suffix(name: str) -> None:
    with pytest.raises(SRNOError, match=f"^upload: {name} is a camera's RAW format.*darktable or RawTherapee$"):
        read(MAGICS[name], name="upload")
    assert read_head(MAGICS[name]) is None


@pytest.mark.parametrize("kind", [FILTER_ARRAY, LINEAR])
@pytest.mark.parametrize(
    ("maker", "suffix", "name"),
    [
        ("NIKON CORPORATION", "", "NEF"),
        ("SONY", "", "ARW"),
        ("PENTAX", ".tif", "PEF"),
        ("", "", "RAW"),
        ("", ".nef", "NEF"),
    ],
)
def test_sensor_values_below_a_preview_are_found(kind: tuple[int, int], maker: str, suffix: str, name: str) -> None:
    make = {271: (2, 0)} if maker else {}
    data = bytearray(raw_tiff(tags={262: (3, 2), **make}, sub={262: kind}))
    if maker:  # a text longer than four bytes stands elsewhere
        at = data.index(struct.pack("<HH", 271, 2))
        data[at + 4 : at + 12] = struct.pack("<II", len(maker) + 1, len(data))
        data += maker.encode() + b"\0"
    assert raw_name_of(bytes(data), suffix) == name
    assert raw_name_of(raw_tiff(tags={262: kind}), suffix) is not None
    assert raw_name_of(raw_tiff(tags={262: (3, 2)}, sub={262: (3, 2)}), ".tif") is None


@pytest.mark.parametrize("suffix", RAW_SUFFIXES)
def test_unknown_content_is_refused_by_its_suffix(suffix: str, tmp_path: Path) -> None:
    for name, content in (("a" + suffix, bytes(100)), ("b" + suffix.upper(), tiff(np.asarray(PREVIEW)))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SRNOError, match=f"{name}: {RAW_SUFFIXES[suffix]} is a camera's RAW format"):
            read(tmp_path / name)


def test_a_jpeg_named_like_a_raw_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "photo.nef").write_bytes(encode(PREVIEW, "JPEG"))
    assert read(tmp_path / "photo.nef").format == "JPEG"


def test_cycles_of_directories_do_not_hang() -> None:
    data = bytearray(raw_tiff(tags={262: (3, 2)}, sub={262: (3, 2)}))
    data[8 + 2 + 12 * 2 : 8 + 2 + 12 * 2 + 4] = struct.pack("<I", 8)
    assert raw_name_of(bytes(data), "") is None
