"""The page in a real browser: exports and saved views."""

from pathlib import Path

import numpy as np
import pytest
from browsing import SIZE
from PIL import Image
from serving import picture

from srno.cli import main
from srno.server.clips import PAIR_GAP

pytestmark = pytest.mark.browser


def test_an_export_equals_the_file_of_srno_upscale(visit, models, tmp_path):
    visitor, data = visit(), picture(*SIZE)
    visitor.open(data)
    page = visitor.page
    page.get_by_role("button", name="Export…").click()
    page.get_by_label("Size by").select_option("width")
    page.get_by_label("Width", exact=True).fill("237")
    page.get_by_label("Bits per channel").select_option("16")
    assert "237 × 178 pixels" in page.text_content("#outcome")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export", exact=True).click()
    assert download.value.suggested_filename == "hills_3.703x.png"
    saved = Path(download.value.path()).read_bytes()
    (tmp_path / "hills.png").write_bytes(data)
    command = ["upscale", str(tmp_path / "hills.png"), "-o", str(tmp_path / "out.png"), "--width", "237"]
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--bit-depth", "16", "-m", str(models["rough"])])
    assert saved == (tmp_path / "out.png").read_bytes()
    page.get_by_role("button", name="Close").click()
    assert page.get_by_role("dialog").count() == 0


def test_an_export_can_be_stopped(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    page = visitor.page
    page.get_by_role("button", name="Export…").click()
    page.get_by_label("Scale", exact=True).fill("75")
    page.get_by_role("button", name="Export", exact=True).click()
    page.locator("#export-eta").filter(has_text="%").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("text=Stopped.")
    assert page.get_by_role("button", name="Export", exact=True).is_enabled()


def test_the_part_in_the_window_is_exported_at_any_scale(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.wheel(-400, 450, 350)
    page, view = visitor.page, visitor.view
    scale = view["level"] / SIZE[0]
    columns = int(np.ceil((view["width"] - view["left"]) / scale)) - int(np.floor(-view["left"] / scale))
    page.keyboard.press("e")
    page.locator("#part").select_option("view")
    page.get_by_label("Scale", exact=True).fill("0.5")
    assert "at least 1" in page.text_content("#outcome")
    page.get_by_label("Scale", exact=True).fill("3")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export", exact=True).click()
    assert Image.open(download.value.path()).width == 3 * columns
    assert "_at_" in download.value.suggested_filename


def test_another_picture_resets_the_export_dialog(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.page.keyboard.press("e")
    visitor.page.locator("#by").select_option("width")
    assert visitor.page.input_value("#width") == str(4 * SIZE[0])
    visitor.page.get_by_role("button", name="Close").click()
    visitor.open(picture(40, 30, kind="JPEG"), "other.jpg")
    visitor.page.keyboard.press("e")
    assert visitor.page.input_value("#width") == "160"
    assert visitor.page.input_value("#format") == "JPEG"
    visitor.page.locator("#outcome").filter(has_text="About").wait_for()  # of time and bytes


def test_a_pair_to_share_is_made_on_the_server(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.page.keyboard.press("b")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="Make").click()
    assert download.value.suggested_filename.endswith("_before_after.png")
    assert Image.open(download.value.path()).width == 2 * visitor.view["level"] + PAIR_GAP


def test_the_dialog_says_the_zoom_that_the_frames_will_have(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.page.keyboard.press("b")
    visitor.page.select_option("#clip-kind", "webp")
    visitor.page.select_option("#clip-width", "320")
    assert "at ×5.00, reached from the whole picture, 320 × 240 pixels" in visitor.page.text_content("#clip-outcome")
    visitor.page.keyboard.press("Escape")
    visitor.open(picture(360, 270, "L"))
    assert visitor.zoom > 1
    visitor.page.keyboard.press("b")  # the choice is kept
    assert "make the frames wider: below ×1" in visitor.page.text_content("#clip-outcome")
    assert visitor.page.is_disabled("#clip-start")
    visitor.page.select_option("#clip-width", "480")
    assert visitor.page.is_enabled("#clip-start")


def test_the_saved_view_equals_the_canvas(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.wheel(-400, 450, 350)
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="This view").click()
    saved = np.asarray(Image.open(download.value.path()).convert("RGB"))
    assert np.array_equal(saved, visitor.expected("rough", SIZE))
    assert download.value.suggested_filename.startswith("hills_view_")
