"""The page cleans compressed pictures: `light@0.65` is a source, and a slider chooses the strength."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from serving import picture, tile, tile_pixels, upload
from test_exporting import export

import srno
from srno.checkpoints.catalogue import choose_strength, find
from srno.imaging.picture import Compression

SIZE = (48, 36)
STRENGTH = choose_strength(Compression("jpeg", 30))


def jpeg(quality: int = 30) -> bytes:
    stream = io.BytesIO()
    Image.open(io.BytesIO(picture(*SIZE))).save(stream, "JPEG", quality=quality)
    return stream.getvalue()


@pytest.fixture(scope="module")
def models() -> dict[str, Path]:
    """The shipped pair instead of tiny models: only these can be mixed."""
    return {"light": find("light"), "photo": find("photo")}


def test_about_lists_which_models_clean_and_an_upload_gives_the_strength(client):
    assert client.get("/api/about").json()["cleanable"] == ["light"]
    opened = upload(client, jpeg(), "a.jpg")
    assert opened["clean"] == STRENGTH
    assert opened["compression"] == "JPEG of quality 30"
    assert "clean" not in upload(client, picture(*SIZE))


def test_a_tile_of_a_strength_is_that_of_the_mixed_weights(client):
    opened = upload(client, jpeg(), "a.jpg")
    level, rect = (96, 72), (0, 0, 96, 72)
    tiles = {
        name: tile_pixels(client, opened, name, level, rect) for name in ("light", "light@0.65", "photo", "light@1")
    }
    expected = srno.upscale(jpeg(), clean=0.65, integral="exact")
    assert np.abs(tiles["light@0.65"].astype(int) - np.asarray(expected)).max() <= 2  # its integral is an estimate
    assert np.array_equal(tiles["photo"], tiles["light@1"])
    assert not np.array_equal(tiles["light"], tiles["light@0.65"])


@pytest.mark.parametrize("name", ["light@0.66", "light@2", "light@", "light@-0.5", "light@nan", "photo@0.5", "@0.5"])
def test_other_strengths_and_models_are_refused(client, name: str):
    answer = tile(client, upload(client, jpeg()), name, (96, 72), (0, 0, 96, 72))
    assert answer.status_code == 400
    assert "model" in answer.json()["error"]


def test_an_export_of_the_suggested_strength_equals_the_command(client, tmp_path: Path):
    opened = upload(client, jpeg(), "a.jpg")
    _, data = export(client, opened, model=f"light@{STRENGTH:g}", scale="2", format="PNG")
    (tmp_path / "a.jpg").write_bytes(jpeg())
    ours = srno.upscale(tmp_path / "a.jpg", output=tmp_path / "b.png")
    assert data == ours.read_bytes()


@pytest.mark.browser
def test_the_slider_starts_at_the_suggested_strength_and_updates_the_view(visit):
    visitor = visit()
    page: Any = visitor.page
    assert not page.is_visible("#clean-choice")
    visitor.open(jpeg(), "a.jpg")
    assert page.input_value("#clean") == f"{STRENGTH:g}"
    assert page.text_content("#clean-value") == f"{STRENGTH:g}"
    assert page.locator("#clean-auto").get_attribute("hidden") is None  # narrow windows have no room for it
    assert any(f"source=light%40{STRENGTH:g}" in url for url in visitor.asked)
    page.keyboard.press("2")
    visitor.until(lambda: page.text_content("#tag-after") == f"srno · light, clean {STRENGTH:g}")
    before = visitor.canvas()
    page.locator("#clean").fill("0.2")
    visitor.until(lambda: page.text_content("#tag-after") == "srno · light, clean 0.2")
    visitor.sharp()
    assert page.text_content("#clean-value") == "0.2"
    assert page.locator("#clean-auto").get_attribute("hidden") is not None
    assert not np.array_equal(visitor.canvas(), before)
    page.locator("#clean").focus()
    page.keyboard.press("1")  # the slider has no use for it
    page.wait_for_selector("#stage[data-mode=off]")
    page.locator("#clean").fill("0")
    visitor.until(lambda: page.text_content("#tag-after") == "srno · light")
    page.locator("#model").select_option("photo")
    assert not page.is_visible("#clean-choice")


@pytest.mark.browser
def test_a_strength_survives_a_reload_and_a_lossless_picture_starts_at_zero(visit):
    visitor = visit()
    page: Any = visitor.page
    visitor.open(jpeg(), "a.jpg")
    page.locator("#clean").fill("0.2")
    visitor.until(lambda: "light%400.2" in page.url)
    page.reload()
    visitor.sharp()
    assert page.input_value("#clean") == "0.2"
    visitor.open(picture(*SIZE))
    assert page.input_value("#clean") == "0"


@pytest.mark.browser
def test_every_control_is_in_the_window_at_any_width(visit):
    visitor = visit()
    files = [{"name": f"IMG_2024061{i}.jpg", "mimeType": "image/jpeg", "buffer": jpeg()} for i in (1, 2)]
    visitor.page.set_input_files("#file", files)  # two pictures and a slider: the fullest bar
    visitor.sharp()
    widths = [(width, 700) for width in range(360, 2000, 40)] + [(width, 375) for width in range(560, 960, 40)]
    for width, height in widths:
        visitor.page.set_viewport_size({"width": width, "height": height})
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width
        assert visitor.page.evaluate("document.getElementById('title').clientWidth") >= (60 if height > 400 else 0)
