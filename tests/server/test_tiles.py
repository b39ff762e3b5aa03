"""Tiles: the operator at exactly the requested pixels, without seams."""

import io
import threading

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image
from serving import P3, picture, tile, tile_pixels, upload

from srno.checkpoints.catalogue import load
from srno.field.field import lift
from srno.field.sample_windows import QUADRATURE_POINTS
from srno.imaging.picture import from_float
from srno.server.studio import Studio
from srno.server.tiles import Tile
from srno.server.workers import FIRST

SIZE = (37, 23)


@pytest.fixture
def opened(client):
    return upload(client, picture(*SIZE))


def rendered(models, data: bytes, level: tuple[int, int]) -> np.ndarray:
    """The whole picture, rendered by the engine without the server."""
    image = torch.from_numpy(np.array(Image.open(io.BytesIO(data)))).permute(2, 0, 1) / 255 * 2 - 1
    rgb = lift(load(models["rough"]), image).render((level[1], level[0]), integral=QUADRATURE_POINTS)
    return from_float((rgb.permute(1, 2, 0) * 0.5 + 0.5).numpy(), 8)


@pytest.mark.parametrize("scale", [1.0, 1.7, 4.0, 11.3])
def test_a_tile_equals_the_crop_of_the_whole_picture(client, opened, models, scale):
    level = round(SIZE[0] * scale), round(SIZE[1] * scale)
    whole = rendered(models, picture(*SIZE), level)
    left, top, width, height = level[0] // 3, level[1] // 4, level[0] // 2, level[1] // 2
    seen = tile_pixels(client, opened, "rough", level, (left, top, width, height))
    expected = whole[top : top + height, left : left + width]
    assert np.array_equal(seen, expected)


def test_a_tile_within_one_pixel_is_smooth(client, opened):
    level = SIZE[0] * 500, SIZE[1] * 500
    seen = tile_pixels(client, opened, "rough", level, (9000, 5000, 200, 100)).astype(int)
    assert seen.shape == (100, 200, 3)
    assert np.abs(np.diff(seen, axis=1)).max() <= 2  # the field is a continuous function


def test_bicubic_tiles_match_pillow(client):
    data = picture(*SIZE)
    opened, level = upload(client, data), (SIZE[0] * 3, SIZE[1] * 3)
    seen = tile_pixels(client, opened, "bicubic", level, (0, 0, *level))
    expected = np.asarray(Image.open(io.BytesIO(data)).resize(level, Image.Resampling.BICUBIC)).astype(int)
    assert np.abs(seen - expected).max() <= 4  # Pillow clips and rounds between its two passes
    assert np.abs(seen - expected).mean() < 0.3


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    if source == "rough":
        # Products of other shapes differ in the last bit: one value in a million is so near to a half that it shows.
        assert (difference > 0).mean() < 1e-5


def test_a_level_below_x1_is_the_picture_reduced_by_pillow(client):
    data = picture(60, 40)
    opened = upload(client, data)
    seen = tile_pixels(client, opened, "rough", (30, 20), (5, 5, 20, 10))
    expected = np.asarray(Image.open(io.BytesIO(data)).resize((30, 20), Image.Resampling.BICUBIC))[5:15, 5:25]
    assert np.array_equal(seen, expected)


def test_gray_stays_gray_and_alpha_equals_bicubic(client):
    opened = upload(client, picture(20, 20, "LA"))
    seen = tile_pixels(client, opened, "rough", (60, 60), (10, 10, 30, 30)).astype(int)
    assert np.ptp(seen[..., :3], axis=2).max() == 0
    whole = tile_pixels(client, opened, "bicubic", (60, 60), (10, 10, 30, 30))
    assert np.array_equal(seen[..., 3], whole[..., 3])


def test_colours_of_a_profile_are_converted_to_srgb(client):
    data, stream = picture(16, 16), io.BytesIO()
    Image.open(io.BytesIO(data)).save(stream, "PNG", icc_profile=P3)
    plain, wide = upload(client, data), upload(client, stream.getvalue())
    seen = [tile_pixels(client, one, "plain", (32, 32), (0, 0, 32, 32)).astype(int) for one in (plain, wide)]
    saturation = [np.ptp(one, axis=2).mean() for one in seen]
    assert saturation[1] > saturation[0] + 2


def test_nearest_tiles_repeat_the_pixels_of_the_picture(client):
    data = picture(*SIZE, "RGBA")
    opened, whole = upload(client, data), np.asarray(Image.open(io.BytesIO(data)))
    seen = tile_pixels(client, opened, "nearest", (SIZE[0] * 3, SIZE[1] * 3), (30, 12, 36, 24))
    assert np.array_equal(seen, whole[4:12, 10:22].repeat(3, axis=0).repeat(3, axis=1))


LARGE = (400, 300)


def test_a_large_picture_has_two_versions_of_its_integral(client):
    opened = upload(client, picture(*LARGE))
    level, rect = (1200, 900), (300, 300, 64, 48)
    first = tile_pixels(client, opened, "rough", level, rect, 1)
    path = f"/api/images/{opened['id']}/state?model=rough"
    states = [client.get(path).json()]
    while states[-1]["version"] < states[-1]["versions"]:
        states.append(client.get(path).json())
    versions = [state["version"] for state in states]
    assert versions == sorted(versions)
    assert states[-1] == {"version": 2, "versions": 2}
    assert np.array_equal(tile_pixels(client, opened, "rough", level, rect, 1), first)
    last = tile_pixels(client, opened, "rough", level, rect, 2)
    assert np.array_equal(tile_pixels(client, opened, "rough", level, rect), last)
    assert np.abs(last.astype(int) - first).max() < 20


@pytest.mark.parametrize("version", [0, 2, 9])
def test_an_unknown_version_is_refused(client, opened, version):
    answer = tile(client, opened, "rough", (100, 60), (0, 0, 5, 5), version)
    assert answer.status_code == 400
    assert "this picture has 1" in answer.json()["error"]


def test_a_tile_of_a_large_picture_encodes_only_its_blocks(client, studio):
    opened = upload(client, picture(*LARGE))
    tile_pixels(client, opened, "rough", (1600, 1200), (700, 600, 50, 50), 1)
    places = {key[3] for key in studio.memory._entries if key[0] == "block"}
    assert places == {(row, column) for row in (9, 10) for column in (10, 11)}


def test_a_tile_encodes_what_it_shares_with_its_window(client, studio):
    opened = upload(client, picture(*LARGE))
    query = {"source": "rough", "level": "1600,1200", "rect": "760,600,50,50", "version": 1}
    alone = client.get(f"/api/images/{opened['id']}/tile", params=query).content
    again = upload(client, picture(*LARGE))
    answer = client.get(f"/api/images/{again['id']}/tile", params=query | {"window": "400,400,600,400"})
    assert answer.content == alone
    places = {key[3] for key in studio.memory._entries if key[:2] == ("block", again["id"])}
    assert {(6, 6), (9, 10), (12, 15)} <= places
    wrong = client.get(f"/api/images/{again['id']}/tile", params=query | {"window": "1400,400,600,400"})
    assert wrong.status_code == 400


def test_the_first_pixels_of_a_large_picture_come_before_better_ones_of_a_small_one(models):
    """Ten tabs: each shows something before any of them is refined."""
    studio, gate, order = Studio(models, memory=300_000_000, threads=1), threading.Event(), []
    small, large = (studio.open(picture(*size), "hills.png").future.result(10) for size in (SIZE, (1300, 900)))
    studio.load("rough").future.result(10)
    studio._tiles.submit(lambda _: gate.wait(10), FIRST)
    better = studio.tile(small, Tile("rough", (200, 120), (0, 0, 50, 50), 1), replaces=True)
    first = studio.tile(large, Tile("rough", (2600, 1800), (0, 0, 50, 50), 1))
    for name, job in {"better": better, "first": first}.items():
        job.future.add_done_callback(lambda _, name=name: order.append(name))
    gate.set()
    assert all(job.future.result(20) for job in (better, first))
    assert order == ["first", "better"]
    studio.close()


def test_the_tiles_of_a_large_picture_meet_without_seams(client):
    opened, level = upload(client, picture(*LARGE)), (1000, 750)
    whole = tile_pixels(client, opened, "rough", level, (200, 200, 300, 260), 1).astype(int)
    parts = [
        np.hstack([tile_pixels(client, opened, "rough", level, (x, y, 150, 130), 1) for x in (200, 350)])
        for y in (200, 330)
    ]
    difference = np.abs(np.vstack(parts) - whole)
    assert difference.max() <= 1
    assert (difference > 0).mean() < 1e-4


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
def test_invalid_levels_and_rectangles_are_refused(client, opened, level, rect):
    answer = client.get(f"/api/images/{opened['id']}/tile", params={"source": "rough", "level": level, "rect": rect})
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize("path", ["/api/images/nothing/tile?level=1,1&rect=0,0,1,1", "/api/exports/nothing"])
def test_unknown_ids_are_not_found(client, path):
    assert client.get(path).status_code == 404


def test_an_unknown_model_is_refused_with_the_known_names(client, opened):
    answer = client.get(f"/api/images/{opened['id']}/state?model=../../etc/passwd")
    assert answer.status_code == 400
    assert "rough, plain" in answer.json()["error"]
    assert tile(client, opened, "other", (100, 60), (0, 0, 5, 5)).status_code == 400
