"""Pictures to share: before and after, and a zoom as an animation."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont, ImageSequence
from serving import finished, picture, tile_pixels, upload

from srno.server.clips import CLIP_FRAMES, LABEL_BAR_HEIGHT, PAIR_GAP, ClipOptions, _encode, _journey, name_of, zoom_of

SIZE = (40, 30)


def clip(client: Any, opened: dict[str, Any], **options: Any) -> tuple[dict[str, Any], Image.Image]:
    fields = {"model": "rough", "against": "bicubic", "box": [8, 6, 32, 24], "width": 96, "height": 72, **options}
    result = finished(client, client.post(f"/api/images/{opened['id']}/clips", json=fields))
    assert result.get("done"), result
    return result, Image.open(io.BytesIO(client.get(result["file"]).content))


@pytest.mark.parametrize("against", ["bicubic", "nearest", "plain"])
def test_a_pair_holds_the_pixels_of_both_sides(client, against):
    opened = upload(client, picture(*SIZE))
    result, image = clip(client, opened, kind="pair", against=against, labels=False)
    assert (image.format, image.size) == ("PNG", (96 * 2 + PAIR_GAP, 72))
    assert result["name"] == "hills_4x_before_after.png"
    pixels, level, rect = np.asarray(image), (160, 120), (32, 24, 96, 72)
    assert np.array_equal(pixels[:, :96], tile_pixels(client, opened, against, level, rect))
    assert np.array_equal(pixels[:, 96 + PAIR_GAP :], tile_pixels(client, opened, "rough", level, rect))


def test_labels_are_written_above_the_pictures_and_not_into_them(client):
    opened = upload(client, picture(*SIZE))
    _, plain = clip(client, opened, kind="pair", labels=False)
    _, labelled = clip(client, opened, kind="pair")
    pixels = np.asarray(labelled)
    assert np.array_equal(pixels[LABEL_BAR_HEIGHT:], np.asarray(plain))
    for half in (pixels[:LABEL_BAR_HEIGHT, :96], pixels[:LABEL_BAR_HEIGHT, 96 + PAIR_GAP :]):
        assert half.max() > 200  # letters


def test_a_wide_pair_is_stacked(client):
    opened = upload(client, picture(*SIZE))
    _, image = clip(client, opened, kind="pair", box=[0, 6, 40, 16], width=160, height=40, labels=False)
    assert image.size == (160, 80 + PAIR_GAP)


@pytest.mark.parametrize("kind", ["webp", "gif"])
def test_a_zoom_ends_with_the_pixels_of_the_view(client, kind):
    opened = upload(client, picture(*SIZE))
    result, image = clip(client, opened, kind=kind, labels=False, against=None)
    assert image.format == kind.upper()
    frames = [np.asarray(frame.convert("RGB")).astype(int) for frame in ImageSequence.Iterator(image)]
    assert len(frames) == CLIP_FRAMES
    last = tile_pixels(client, opened, "rough", (160, 120), (32, 24, 96, 72)).astype(int)
    assert np.abs(frames[-1] - last).mean() < 12  # the formats are lossy
    assert result["name"] == f"hills_zoom_4x.{kind}"


def test_a_zoom_of_two_sides_has_the_other_side_on_the_left(client):
    opened = upload(client, picture(*SIZE))
    _, image = clip(client, opened, kind="webp", labels=False, against="nearest")
    image.seek(CLIP_FRAMES - 1)
    last, (level, rect) = np.asarray(image.convert("RGB")).astype(int), ((160, 120), (32, 24, 96, 72))
    left = tile_pixels(client, opened, "nearest", level, rect).astype(int)[:, :44]
    right = tile_pixels(client, opened, "rough", level, rect).astype(int)[:, 52:]
    assert np.abs(last[:, :44] - left).mean() < 12
    assert np.abs(last[:, 52:] - right).mean() < 12


def test_below_x1_both_sides_of_a_zoom_are_bicubic_as_its_label_says(client):
    noise = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (300, 400, 3), np.uint8)).save(noise, "PNG")
    opened = upload(client, noise.getvalue())
    _, image = clip(client, opened, kind="webp", labels=False, against="nearest")
    first, (level, rect) = np.asarray(image.convert("RGB")).astype(int)[:, :44], ((96, 72), (0, 0, 44, 72))
    away = {
        source: np.abs(first - tile_pixels(client, opened, source, level, rect)).mean()
        for source in ("bicubic", "nearest")
    }
    assert away["bicubic"] < 15 < 40 < away["nearest"]


def test_a_gif_keeps_the_colours_of_a_small_part():
    rng = np.random.default_rng(0)
    frame = (rng.integers(20, 230, (120, 160, 1)) + rng.integers(-8, 9, (120, 160, 3))).astype(np.uint8)
    part = np.s_[50:55, 70:75]
    frame[part] = rng.integers(60, 250, (5, 5, 1)) * (1, 0.7, 0.4)
    stored = np.asarray(Image.open(io.BytesIO(_encode([Image.fromarray(frame)] * 2, "GIF"))).convert("RGB"))
    assert np.abs(stored[part].mean(axis=(0, 1)) - frame[part].mean(axis=(0, 1))).max() < 5  # 47 with a median cut


def test_a_zoom_grows_by_the_same_factor_in_every_step_and_stays_in_the_picture():
    options = ClipOptions(kind="gif", sources=("x",), box=(30.0, 1.0, 39.0, 7.0), size=(90, 60), labels=False)
    boxes = list(_journey((40, 30), options))
    assert boxes[0] == pytest.approx((0, 0, 40, 26.6667), rel=1e-4)
    assert boxes[-1] == options.box
    widths = np.array([right - left for left, _, right, _ in boxes])
    assert np.allclose(widths[1:] / widths[:-1], widths[1] / widths[0])
    assert all(0 <= left < right <= 40 and 0 <= top < bottom <= 30 for left, top, right, bottom in boxes)


def test_transparent_pixels_are_white(client):
    samples = np.zeros((20, 20, 4), np.uint8)
    opened = upload(client, _png(samples))
    _, image = clip(client, opened, kind="pair", box=[0, 0, 20, 20], width=40, height=40, labels=False)
    assert np.asarray(image)[:, :40].min() == 255


def _png(samples: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(samples).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "film"}, "pair, webp, gif"),
        ({"against": None}, "the other side"),
        ({"model": "nothing"}, "rough, plain"),
        ({"box": [0, 0, 50, 10]}, "40×30"),
        ({"box": [0, 0, 10]}, "four numbers"),
        ({"box": [0, 0, True, 10]}, "four numbers"),
        ({"box": "all"}, "four numbers"),
        ({"width": 5000, "height": 5000}, "at most"),
        ({"width": 17, "height": 16}, "×0.71"),
        ({"kind": "gif", "width": 1500, "height": 1000}, "at most"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_invalid_options_give_a_message(client, options, words):
    opened = upload(client, picture(*SIZE))
    fields = {"kind": "pair", "model": "rough", "against": "bicubic", "box": [8, 6, 32, 24], "width": 96, "height": 72}
    answer = client.post(f"/api/images/{opened['id']}/clips", json=fields | options)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def drawn(letter: str) -> bytes:
    """The pixels of a letter in the font of the labels."""
    image = Image.new("L", (32, 32))
    ImageDraw.Draw(image).text((8, 4), letter, fill=255, font=ImageFont.load_default(16))
    return image.tobytes()


def test_the_font_has_every_character_of_a_label():
    labels = [name_of("bicubic"), name_of("nearest"), name_of("light@0.65"), zoom_of(80.5)]
    assert labels == ["bicubic", "nearest neighbour", "srno · light, clean 0.65", "80.5x"]
    assert [letter for letter in "".join(labels) if drawn(letter) == drawn("\uffff")] == []
    assert drawn("×") == drawn("\uffff")  # otherwise it could be used
