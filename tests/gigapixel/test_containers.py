"""What the tiled formats hold: every level, every compression, and the metadata, as other programs read them."""

import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import pyvips
import tifffile
import zarr
from giga_pictures import STREAMED, model_of, random_picture, request_for, scaled
from numcodecs.zstd import decompress as zstd_decompress
from PIL import Image

from srno.errors import SRNOError
from srno.gigapixel.levels import halve
from srno.gigapixel.make import make_large
from srno.imaging.formats import Format
from srno.imaging.icc import srgb
from srno.imaging.read import read
from srno.imaging.write import write

SUFFIXES = {"TIFF": "tif", "ZARR": "ome.zarr", "DZI": "dzi"}


def made(
    folder: Path, kind: Format, suffix: str | None = None, *, channels: int = 3, bits: int = 8, **settings: Any
) -> Path:
    """Write a picture of 33×27 pixels with a profile and a resolution, and enlarge it threefold."""
    picture = replace(random_picture((33, 27), channels, bits), dpi=(300.0, 200.0))
    picture = replace(picture, icc=srgb() if channels >= 3 else None)
    source, output = folder / "in.tif", folder / f"out.{suffix or SUFFIXES[kind]}"
    if not source.exists():
        write(picture, source, format="TIFF")
    request = request_for(source, output, scaled(picture.size, "3"), format=kind)
    make_large(replace(request, settings=replace(STREAMED, **settings)), model_of("edsr"), lambda _: None)
    return output


def by_vips(path: Path, page: int = 0) -> np.ndarray:
    """The samples of a page; libvips would answer from its cache if the name of a file were given again."""
    return pyvips.Image.new_from_file(str(path), page=page, revalidate=True).numpy()


def by_hand(path: Path) -> np.ndarray:
    """The samples of a TIFF file in tiles: not every build of libvips reads zstd, and tifffile does not by itself."""
    with tifffile.TiffFile(path) as file:
        page = file.pages.first
        decode = {8: zlib.decompress, 50000: zstd_decompress}[page.compression]
        side, channels = page.tilewidth, page.samplesperpixel
        columns = -(-page.imagewidth // side)
        out = np.zeros((-(-page.imagelength // side) * side, columns * side, channels), page.dtype)
        segments: Any = file.filehandle.read_segments(page.dataoffsets, page.databytecounts)
        for data, index in segments:
            tile = np.frombuffer(decode(data), page.dtype).reshape(side, side, channels)
            y, x = (n * side for n in divmod(index, columns))
            out[y : y + side, x : x + side] = np.cumsum(tile, axis=1, dtype=page.dtype)
    return out[: page.imagelength, : page.imagewidth]


@pytest.mark.parametrize("compression", ["deflate", "zstd"])
@pytest.mark.parametrize(("channels", "bits"), [(1, 16), (3, 8), (4, 16)])
def test_compression_changes_no_sample_of_a_tiff(tmp_path, compression, channels, bits):
    plain = by_vips(made(tmp_path, "TIFF", channels=channels, bits=bits))
    packed = by_hand(made(tmp_path, "TIFF", channels=channels, bits=bits, compression=compression))
    np.testing.assert_array_equal(packed, plain.reshape(packed.shape))


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_in_a_tiff_is_close_to_the_samples(tmp_path, channels):
    plain = by_vips(made(tmp_path, "TIFF", channels=channels)).astype(int)
    path = made(tmp_path, "TIFF", channels=channels, compression="jpeg")
    assert np.abs(by_vips(path).astype(int) - plain).mean() < 4  # noise at quality 95
    assert tifffile.TiffFile(path).pages.first.compression == tifffile.COMPRESSION.JPEG


def test_jpeg_in_an_ome_tiff_is_rgb(tmp_path):
    """Bio-Formats reads wrong colours from YCbCr of full resolution."""
    plain = by_vips(made(tmp_path, "TIFF")).astype(int)
    path = made(tmp_path, "TIFF", "ome.tif", compression="jpeg")
    assert np.abs(by_vips(path).astype(int) - plain).mean() < 4
    assert tifffile.TiffFile(path).pages.first.photometric == tifffile.PHOTOMETRIC.RGB


@pytest.mark.parametrize("side", [16, 32, 128])
def test_a_pyramid_has_halves_of_the_picture(tmp_path, side):
    path = made(tmp_path, "TIFF", pyramid=True, side=side)
    expected = by_vips(path)
    with tifffile.TiffFile(path) as file:
        assert file.is_bigtiff
        pages = [page for page in file.pages if isinstance(page, tifffile.TiffPage)]
        assert [page.is_reduced for page in pages] == [False, True, True, True]
        for page in pages:
            np.testing.assert_array_equal(page.asarray(), expected)
            expected = halve(expected)


@pytest.mark.parametrize(("channels", "bits", "compression"), [(1, 16, "none"), (3, 8, "deflate"), (4, 16, "none")])
def test_an_ome_tiff_has_its_levels_as_subdirectories(tmp_path, channels, bits, compression):
    path = made(tmp_path, "TIFF", "ome.tif", channels=channels, bits=bits, pyramid=True, compression=compression)
    with tifffile.TiffFile(path) as file:
        assert file.is_ome
        assert len(file.pages) == 1
        (series,) = file.series
        expected = series.asarray()
        shape = (81, 99) if channels == 1 else (81, 99, channels)
        assert expected.shape == shape
        assert len(series.levels) == 4
        for level in series.levels:
            np.testing.assert_array_equal(level.asarray(), expected.reshape(level.shape))
            expected = halve(expected if channels > 1 else expected[..., None]).squeeze()
        described = ElementTree.fromstring(str(file.ome_metadata)).find(".//{*}Pixels")
        assert described is not None
        assert float(described.attrib["PhysicalSizeY"]) == pytest.approx(25400 / 200)
        assert described.attrib["Type"] == f"uint{bits}"


def test_a_tiff_keeps_profile_and_resolution(tmp_path):
    written = read(made(tmp_path, "TIFF"))
    assert written.icc == srgb()
    assert written.dpi == pytest.approx((300, 200))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("name", ["out.tif", "out.ome.tif"])
def test_a_description_stays_in_either_byte_order(tmp_path, order, name):
    samples = random_picture((20, 10), bits=8).samples()
    taken = (33432, "s", 0, "me & you", True)  # Copyright
    tifffile.imwrite(
        tmp_path / "in.tif", samples, byteorder=order, description="a < b", metadata=None, extratags=[taken]
    )
    make_large(
        request_for(tmp_path / "in.tif", tmp_path / name, scaled((20, 10), "2")), model_of("edsr"), lambda _: None
    )
    with tifffile.TiffFile(tmp_path / name) as file:
        page = file.pages.first
        assert page.tags[33432].value == "me & you"
        described = (
            ElementTree.fromstring(page.description).findtext(".//{*}Description") if file.is_ome else page.description
        )
        assert described == "a < b"


@pytest.mark.parametrize("compression", ["deflate", "zstd", "none"])
def test_zarr_reads_every_level(tmp_path, compression):
    expected = by_vips(made(tmp_path, "TIFF", channels=4, bits=16))
    path = made(tmp_path, "ZARR", channels=4, bits=16, compression=compression)
    group = zarr.open_group(str(path), mode="r")
    ome: Any = group.attrs["ome"]
    described = ome["multiscales"][0]
    assert ome["version"] == "0.5"
    assert [axis["name"] for axis in described["axes"]] == ["c", "y", "x"]
    scale = described["datasets"][0]["coordinateTransformations"][0]["scale"]
    assert scale == pytest.approx([1, 25400 / 200, 25400 / 300])
    for dataset in described["datasets"]:
        np.testing.assert_array_equal(np.asarray(group[dataset["path"]]).transpose(1, 2, 0), expected)
        expected = halve(expected)
    assert json.loads((path / "0" / "zarr.json").read_text())["dimension_names"] == ["c", "y", "x"]


def test_a_zarr_result_can_be_enlarged(tmp_path):
    path = made(tmp_path, "ZARR")
    target = scaled((99, 81), "2")
    request = request_for(path, tmp_path / "next.tif", target, metadata=True)
    make_large(request, model_of("edsr"), lambda _: None)
    again = read(tmp_path / "next.tif")
    assert again.size == (198, 162)
    assert again.icc == srgb()
    assert again.dpi == pytest.approx((300, 200))


def deep_zoom_level(path: Path, level: int) -> np.ndarray:
    """Assemble a level of a Deep Zoom picture as a viewer does."""
    size = [int(n) for n in re.findall(r'(?:Width|Height)="(\d+)"', path.read_text())]
    (tile,) = (int(n) for n in re.findall(r'TileSize="(\d+)"', path.read_text()))
    top = max(size).bit_length() if max(size) & (max(size) - 1) else max(size).bit_length() - 1
    width, height = (-(-n // 2 ** (top - level)) for n in size)
    out = np.zeros((height, width, 3), np.uint8)
    for file in (path.with_name(f"{path.stem}_files") / str(level)).iterdir():
        column, row = (int(n) * tile for n in file.stem.split("_"))
        part = np.asarray(Image.open(file))
        out[row : row + part.shape[0], column : column + part.shape[1]] = part
    return out


def test_deep_zoom_has_every_level_down_to_one_pixel(tmp_path):
    expected = by_vips(made(tmp_path, "TIFF"))
    path = made(tmp_path, "DZI", compression="deflate")
    assert sorted(int(p.name) for p in (tmp_path / "out_files").iterdir()) == list(range(8))
    for level in range(7, -1, -1):
        np.testing.assert_array_equal(deep_zoom_level(path, level), expected)
        expected = halve(expected)
    assert expected.shape == (1, 1, 3)


def test_deep_zoom_rounds_to_8_bits_and_reports_it(tmp_path):
    write(random_picture((20, 20), 3, 16), tmp_path / "in.tif", format="TIFF")
    request = request_for(tmp_path / "in.tif", tmp_path / "out.dzi", scaled((20, 20), "2"), format="DZI")
    notes = make_large(replace(request, settings=replace(STREAMED, compression=None)), model_of("edsr"), lambda _: None)
    assert notes == ("rounded to 8 bits per channel: DZI cannot hold 16",)


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        ("TIFF", {"compression": "jpeg", "bits": 16}, "JPEG holds 8 bits and no alpha, not 16 bits"),
        ("TIFF", {"compression": "jpeg", "channels": 4}, "JPEG holds 8 bits and no alpha, not 8 bits and alpha"),
        ("ZARR", {"compression": "jpeg"}, "OME-Zarr holds deflate, zstd or none"),
        ("DZI", {"compression": "zstd"}, "Deep Zoom holds jpeg, or deflate"),
    ],
)
def test_a_compression_that_does_not_fit_is_refused(tmp_path, kind, settings, reason):
    with pytest.raises(SRNOError, match=reason):
        made(tmp_path, kind, **settings)
    assert [path.name for path in tmp_path.iterdir()] == ["in.tif"]
