"""Inside the operator: the maps are those of the analysis, on a window, in blocks."""

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image
from serving import picture, upload

import srno
from small_models import CONFIGS, random_image, random_model
from srno.analysis import basis_maps, choose_by_energy, summarise, summarise_points
from srno.field.blocks import BlockField
from srno.server.inside import CHANNELS, MAP_SIDE, choose_channels, look_inside
from srno.server.store import Store

SIZE = (24, 36)
LEVEL = (SIZE[0] * 4, SIZE[1] * 4)  # 96×144: the maps of the whole picture have exactly these pixels


def fields() -> tuple[srno.Field, BlockField]:
    """A picture lifted as a whole, and in blocks."""
    model = random_model(CONFIGS["edsr"], dtype=torch.float32)
    image = random_image(*SIZE).float()
    blocks = BlockField(model=model, size=SIZE, pixels=lambda y, x: image[0, :, y, x], cache=Store(1 << 28), side=16)
    return srno.lift(model, image), blocks


def test_maps_and_matrices_are_those_of_the_figures():
    field, blocks = fields()
    channels = choose_channels(blocks)
    groups = look_inside(blocks, LEVEL, (0, 0, *SIZE), 1, channels, lambda _: None)
    assert max(LEVEL) == MAP_SIDE
    summary = summarise(field, LEVEL)
    expected = basis_maps(field, LEVEL, channels.matrices, summary=summary)
    layers = summary.layers
    assert [(group.kind, group.layer) for group in groups[:6]] == [
        ("features", 0), ("z", 0), ("k", 1), ("v", 1), ("m", 1), ("z", 1)
    ]  # fmt: skip
    assert len(groups) == 2 + 4 * layers
    for group in groups[1:]:
        if group.kind == "m":
            np.testing.assert_allclose(group.maps, summary.kernels[group.layer - 1], atol=1e-4)
        elif group.kind != "features":
            t = group.layer - (group.kind != "z")
            np.testing.assert_allclose(group.maps, expected.maps[group.kind][t], atol=2e-3)


def test_the_features_are_those_under_each_point():
    field, blocks = fields()
    channels = choose_channels(blocks)
    group = look_inside(blocks, LEVEL, (0, 0, *SIZE), 1, channels, lambda _: None)[0]
    whole = field.features.permute(2, 0, 1)[list(channels.features)].numpy()
    np.testing.assert_allclose(group.maps, whole.repeat(4, 1).repeat(4, 2), atol=1e-5)


def test_a_window_is_a_sample_of_the_same_functions():
    _, blocks = fields()
    channels = choose_channels(blocks)
    whole = look_inside(blocks, LEVEL, (0, 0, *SIZE), 1, channels, lambda _: None)
    part = look_inside(blocks, LEVEL, (8, 12, 16, 24), 1, channels, lambda _: None)
    assert part[1].maps.shape == (CHANNELS, 96, 144)
    for large, small in zip(whole, part, strict=True):
        if large.kind == "m":
            np.testing.assert_array_equal(small.maps, large.maps)
        else:  # three points of the window for each of the whole picture, the middle one at the same place
            np.testing.assert_allclose(small.maps[:, 1::3, 1::3], large.maps[:, 32:64, 48:96], atol=2e-3)


def test_the_matrix_changes_with_the_zoom():
    _, blocks = fields()
    one, other = (blocks.integrate((SIZE[0] * scale, SIZE[1] * scale))[0].M for scale in (1, 3))
    assert float((one - other).norm() / one.norm()) > 1e-3


def test_points_estimate_the_summary_of_all_pixels():
    field, blocks = fields()
    summary = summarise(field, LEVEL)
    known = blocks.integrate(LEVEL)
    points = summarise_points(blocks.model.kernel_layers(), blocks.latent(LEVEL), known)
    np.testing.assert_allclose(points.kernels, summary.kernels, atol=1e-4)
    assert choose_by_energy(points, 2)["z"] == choose_by_energy(summary, 2)["z"]


def test_the_reply_has_a_sheet_of_maps_and_pictures_of_the_matrices(client):
    opened = upload(client, picture(60, 40))
    query = {"source": "rough", "level": "240,160", "rect": "20,20,120,80"}
    answer = client.get(f"/api/images/{opened['id']}/inside", params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    groups = {
        kind: [group for group in found["groups"] if group["kind"] == kind] for kind in ("features", "z", "k", "v", "m")
    }
    assert [len(groups[kind]) for kind in groups] == [1, 2, 1, 1, 1]
    sheet = Image.open(io.BytesIO(base64.b64decode(found["sheet"])))
    assert sheet.size == (CHANNELS * found["width"], 5 * found["height"])
    assert (found["width"], found["height"]) == (144, 96)
    matrix = Image.open(io.BytesIO(base64.b64decode(groups["m"][0]["picture"])))
    assert matrix.size == (groups["m"][0]["heads"] * groups["m"][0]["width"], groups["m"][0]["width"])
    ranges = [group["ranges"] for group in groups["z"]]
    assert ranges[0] == ranges[1]  # so that one sees what a layer changes


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"level": "30,20", "rect": "0,0,30,20"}, "below ×1"),
        ({"source": "bicubic"}, "rough, plain"),
        ({"version": "2"}, "version 2"),
        ({"rect": "200,0,100,100"}, "not inside"),
    ],
    ids=["reduced", "a filter", "unknown version", "outside"],
)
def test_maps_below_x1_of_filters_or_outside_the_picture_are_refused(client, query, words):
    opened = upload(client, picture(60, 40))
    given = {"source": "rough", "level": "240,160", "rect": "20,20,120,80"} | query
    answer = client.get(f"/api/images/{opened['id']}/inside", params=given)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
