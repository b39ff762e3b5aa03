"""Tiles: the operator at exactly the pixels that were asked for, without seams."""

import io

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image
from serving import P3, lifted, lines, picture, tile, tile_pixels, upload

from srno.checkpoints.catalogue import load
from srno.field.field import lift
from srno.imaging.picture import from_float
from srno.server.tiles import QUADRATURE

SIZE = (37, 23)


@pytest.fixture
def opened(client):
    return lifted(client, picture(*SIZE))


def rendered(models, data: bytes, level: tuple[int, int]) -> np.ndarray:
    """The whole picture by the engine's own words."""
    image = torch.from_numpy(np.array(Image.open(io.BytesIO(data)))).permute(2, 0, 1) / 255 * 2 - 1
    rgb = lift(load(models["rough"]), image).render((level[1], level[0]), integral=QUADRATURE)
    return from_float((rgb.permute(1, 2, 0) * 0.5 + 0.5).numpy(), 8)


@pytest.mark.parametrize("scale", [1.0, 1.7, 4.0, 11.3])
def test_a_tile_is_cut_out_of_the_whole_picture(client, opened, models, scale):
    level = round(SIZE[0] * scale), round(SIZE[1] * scale)
    whole = rendered(models, picture(*SIZE), level)
    left, top, width, height = level[0] // 3, level[1] // 4, level[0] // 2, level[1] // 2
    seen = tile_pixels(client, opened, "rough", level, (left, top, width, height))
    expected = whole[top : top + height, left : left + width]
    assert np.array_equal(seen, expected)


def test_far_inside_a_pixel(client, opened):
    level = SIZE[0] * 500, SIZE[1] * 500
    seen = tile_pixels(client, opened, "rough", level, (9000, 5000, 200, 100)).astype(int)
    assert seen.shape == (100, 200, 3)
    assert np.abs(np.diff(seen, axis=1)).max() <= 2  # it is a continuous function


def test_bicubic_is_pillows(client):
    data = picture(*SIZE)
    opened, level = upload(client, data), (SIZE[0] * 3, SIZE[1] * 3)
    seen = tile_pixels(client, opened, "bicubic", level, (0, 0, *level))
    expected = np.asarray(Image.open(io.BytesIO(data)).resize(level, Image.Resampling.BICUBIC)).astype(int)
    assert np.abs(seen - expected).max() <= 4  # Pillow cuts off between its two passes
    assert np.abs(seen - expected).mean() < 0.3


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(1, 20), st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["rough", "bicubic"]))
@example(19.8984375, 0, 0, "rough")
def test_tiles_meet_without_seams(client, opened, scale, across, down, source):
    level = width, height = round(SIZE[0] * scale), round(SIZE[1] * scale)
    x, y = 1 + across % (width - 1), 1 + down % (height - 1)
    whole = tile_pixels(client, opened, source, level, (0, 0, width, height))
    parts = [
        np.hstack([tile_pixels(client, opened, source, level, (x0, y0, w, h)) for x0, w in ((0, x), (x, width - x))])
        for y0, h in ((0, y), (y, height - y))
    ]
    difference = np.abs(np.vstack(parts).astype(int) - whole)
    assert difference.max() <= 1
    if source == "rough":  # other products differ in the last bit: one value in a million is that near to a half
        assert (difference > 0).mean() < 1e-5


def test_a_level_below_the_picture_is_the_picture_reduced(client):
    data = picture(60, 40)
    opened = upload(client, data)  # not lifted: there is nothing for the operator to do
    seen = tile_pixels(client, opened, "rough", (30, 20), (5, 5, 20, 10))
    expected = np.asarray(Image.open(io.BytesIO(data)).resize((30, 20), Image.Resampling.BICUBIC))[5:15, 5:25]
    assert np.array_equal(seen, expected)


def test_gray_stays_gray_and_alpha_stays(client):
    opened = lifted(client, picture(20, 20, "LA"))
    seen = tile_pixels(client, opened, "rough", (60, 60), (10, 10, 30, 30)).astype(int)
    assert np.ptp(seen[..., :3], axis=2).max() == 0
    whole = tile_pixels(client, opened, "bicubic", (60, 60), (10, 10, 30, 30))
    assert np.array_equal(seen[..., 3], whole[..., 3])


def test_colours_of_a_profile_are_shown_in_srgb(client):
    data, stream = picture(16, 16), io.BytesIO()
    Image.open(io.BytesIO(data)).save(stream, "PNG", icc_profile=P3)
    plain, wide = lifted(client, data, "plain"), lifted(client, stream.getvalue(), "plain")
    seen = [tile_pixels(client, one, "plain", (32, 32), (0, 0, 32, 32)).astype(int) for one in (plain, wide)]
    saturation = [np.ptp(one, axis=2).mean() for one in seen]
    assert saturation[1] > saturation[0] + 2


def test_a_picture_has_to_be_lifted_first(client):
    opened = upload(client, picture(*SIZE))
    answer = tile(client, opened, "rough", (100, 80), (0, 0, 10, 10))
    assert answer.status_code == 409
    assert tile(client, opened, "bicubic", (100, 80), (0, 0, 10, 10)).status_code == 200


def test_lifting_tells_how_far_it_is(client):
    opened = upload(client, picture(220, 220))
    told = lines(client.post(f"/api/images/{opened['id']}/lift?model=rough"))
    shares = [line["share"] for line in told[:-1]]
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)
    assert told[-1] == {"done": True}


@pytest.mark.parametrize(
    ("level", "rect"),
    [
        ("100,60", "0,0,101,10"),
        ("100,60", "95,0,10,10"),
        ("100,60", "0,0,0,10"),
        ("0,60", "0,0,1,1"),
        ("99999999,60", "0,0,1,1"),
        ("18500,11500", "0,0,3000,3000"),
        ("100", "0,0,1,1"),
        ("100,60", "-1,0,1,1"),
        ("100,60", "0,0,1,1e3"),
        ("100,60", ""),
    ],
)
def test_nonsense_is_refused(client, opened, level, rect):
    answer = client.get(f"/api/images/{opened['id']}/tile", params={"source": "rough", "level": level, "rect": rect})
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize("path", ["/api/images/nothing/tile?level=1,1&rect=0,0,1,1", "/api/exports/nothing"])
def test_what_is_not_there_is_not_found(client, path):
    assert client.get(path).status_code == 404


def test_models_that_are_not_here_are_named(client, opened):
    answer = client.post(f"/api/images/{opened['id']}/lift?model=../../etc/passwd")
    assert answer.status_code == 400
    assert "rough, plain" in answer.json()["error"]
    assert tile(client, opened, "other", (100, 60), (0, 0, 5, 5)).status_code == 400
