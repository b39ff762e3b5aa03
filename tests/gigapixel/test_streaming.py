"""A picture made tile by tile equals the one made in memory, whatever the tiles."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from giga_pictures import STREAMED, model_of, random_picture, request_for, scaled
from hypothesis import given, settings
from hypothesis import strategies as st

from small_models import CONFIGS
from srno.errors import SRNOError
from srno.gigapixel.budget import resident_bytes
from srno.gigapixel.make import make_large
from srno.gigapixel.passes import Status
from srno.gigapixel.prepare import LargeRequest, make_container
from srno.gigapixel.tile_plan import TilePlan
from srno.gigapixel.work import Recipe, TileMaker
from srno.imaging.picture import Picture
from srno.imaging.read import read
from srno.imaging.windows import inspect, with_windows
from srno.imaging.write import write
from srno.operator.encoder import radius
from srno.operator.model import Model
from srno.upscaling.enlarge import enlarge_picture
from srno.upscaling.sizes import Request, Target
from srno.upscaling.upscaler import Upscaler


def streamed(request: LargeRequest, model: Model) -> np.ndarray:
    make_large(request, model, lambda _: None)
    result = read(request.output).samples()
    request.output.unlink()
    return result


def in_memory(picture: Picture, target: Target, model: Model, integral: str | int) -> np.ndarray:
    return enlarge_picture(picture, target, Upscaler(model=model, integral=integral), picture.bits).samples()


@settings(max_examples=12)
@given(
    name=st.sampled_from(sorted(CONFIGS)),
    width=st.integers(9, 45),
    height=st.integers(9, 45),
    factor=st.sampled_from(["1.3", "2", "2.7", "3"]),
    side=st.sampled_from([16, 32, 64]),
    integral=st.sampled_from(["exact", 64, "auto"]),
    spare=st.sampled_from([200 << 20, 1 << 30]),
)
def test_any_tiles_give_the_picture_made_in_memory(
    tmp_path_factory, name, width, height, factor, side, integral, spare
):
    """`spare` are the bytes that `--memory` leaves above what the process has."""
    folder = tmp_path_factory.mktemp("streamed")
    model, picture, target = model_of(name), random_picture((width, height)), scaled((width, height), factor)
    write(picture, folder / "in.tif", format="TIFF")
    request = request_for(folder / "in.tif", folder / "out.tif", target, integral=integral)
    request = replace(request, memory=resident_bytes() + spare)
    found = streamed(replace(request, settings=replace(STREAMED, side=side)), model)
    expected = in_memory(picture, target, model, integral)
    assert np.abs(found.astype(int) - expected).max() <= 3  # of 65535: 2·10⁻⁵ of [-1, 1]


@pytest.mark.parametrize("name", ["edsr", "edsr-nearest", "rdn"])
@pytest.mark.parametrize("size", [(3, 50), (41, 37)])
def test_windows_around_points_have_the_features_of_the_picture(tmp_path, name, size):
    model, target = model_of(name), scaled(size, "2.3")
    write(random_picture(size), tmp_path / "in.tif", format="TIFF")
    whole = target.whole[1], target.whole[0]
    plan = TilePlan(size[::-1], whole, (0, 0), whole, 32, radius(model.encoder), 2, 200)
    request = request_for(tmp_path / "in.tif", tmp_path / "out.tif", target)
    file = with_windows(inspect(request.source), tmp_path / "scratch")
    maker = TileMaker(model, Recipe(plan, file, make_container(request, file)[0], 16, True, 1 << 20, tmp_path))
    for tile in plan.tiles_with_points():
        alone, dense = (
            np.frombuffer(maker.lift_points("colour", tile, features), np.float32)
            for features in (None, maker.encode("colour", tile))
        )
        np.testing.assert_allclose(alone, dense, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", [8, 16])
def test_channels_and_bits_equal_those_made_in_memory(tmp_path, channels, bits):
    model, picture = model_of("edsr"), random_picture((150, 140), channels, bits)
    target = scaled(picture.size, "1.5")
    write(picture, tmp_path / "in.tif", format="TIFF")
    request = request_for(tmp_path / "in.tif", tmp_path / "out.tif", target)
    found = streamed(replace(request, settings=replace(STREAMED, side=64)), model)
    expected = in_memory(picture, target, model, "auto")
    assert found.shape == expected.shape
    assert np.abs(found.astype(int) - expected).max() <= (3 if bits == 16 else 1)


def test_alpha_of_one_value_is_copied(tmp_path):
    picture = random_picture((20, 20), 4, 8)
    picture = replace(picture, alpha=np.full((20, 20), 77, np.uint8))
    write(picture, tmp_path / "in.png", format="PNG")
    found = streamed(
        replace(request_for(tmp_path / "in.png", tmp_path / "out.tif", scaled((20, 20), "2")), bits=16),
        model_of("edsr"),
    )
    assert set(found[..., 3].flat) == {77 * 257}


def test_a_crop_has_the_integral_of_the_whole_picture(tmp_path):
    model, picture = model_of("edsr"), random_picture((40, 21))
    target = Request(box=(55, 50), fit="cover").target(picture.size)
    assert target.origin != (0, 0)
    write(picture, tmp_path / "in.tif", format="TIFF")
    request = request_for(tmp_path / "in.tif", tmp_path / "out.tif", target, integral="exact")
    assert np.abs(streamed(request, model).astype(int) - in_memory(picture, target, model, "exact")).max() <= 3


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("tiled", [True, False])
def test_pictures_are_read_upright_in_windows(tmp_path, orientation, tiled):
    samples = random_picture((70, 50)).samples()
    tag = (274, 3, 1, orientation, True)
    tifffile.imwrite(tmp_path / "in.tif", samples, tile=(16, 16) if tiled else None, extratags=[tag], photometric="rgb")
    expected = read(tmp_path / "in.tif").samples()
    file = inspect(tmp_path / "in.tif")
    assert (file.storage == "tiff") is tiled
    windows = with_windows(file, tmp_path / "scratch").open()
    assert file.size == expected.shape[:2]
    rows, columns = slice(3, 41), slice(5, 47)
    np.testing.assert_array_equal(windows.read(rows, columns).samples(), expected[rows, columns])


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_a_tiff_with_missing_tiles_is_refused(tmp_path, compression):
    path = tmp_path / "in.tif"
    tifffile.imwrite(
        path, random_picture((70, 50)).samples(), tile=(16, 16), photometric="rgb", compression=compression
    )
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(SRNOError, match=r"in\.tif: damaged or cut short"):
        read(path)
    with pytest.raises(SRNOError, match=r"^damaged or cut short"):
        inspect(path).open().read(slice(0, 50), slice(0, 70))


@pytest.mark.parametrize("name", ["in.png", "in.jpg", "in.webp", "in.bmp", "in.ppm"])
def test_other_formats_are_read_in_windows(tmp_path, name):
    from srno.imaging.formats import READ_SUFFIXES

    write(random_picture((33, 21), bits=8), tmp_path / name, format=READ_SUFFIXES[Path(name).suffix])
    windows = with_windows(inspect(tmp_path / name), tmp_path / "scratch").open()
    expected = read(tmp_path / name).samples()[2:9, 4:30]
    np.testing.assert_array_equal(windows.read(slice(2, 9), slice(4, 30)).samples(), expected)


def test_progress_names_pass_tile_rate_and_time(tmp_path):
    picture = random_picture((30, 30))
    write(picture, tmp_path / "in.tif", format="TIFF")
    told: list[Status] = []
    request = request_for(tmp_path / "in.tif", tmp_path / "out.tif", scaled((30, 30), "2"), integral="exact")
    make_large(request, model_of("edsr"), told.append)
    assert [status.share for status in told] == sorted(status.share for status in told)
    assert told[-1].share == 1
    assert {status.number for status in told} == {1, 2, 3}
    assert "pass 3 of 3, render: tile 4 of 4," in str(told[-1])
