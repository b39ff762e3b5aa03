"""The page in a real browser: labels say what is shown, errors stay, files and settings survive."""

from typing import Any

import numpy as np
import pytest
from browsing import PHONE, SIZE
from PIL import Image
from serving import picture

pytestmark = pytest.mark.browser

TILES_OF_ROUGH = "**/tile?source=rough*"


def labels(visitor: Any) -> tuple[str, str]:
    return visitor.page.text_content("#tag-before"), visitor.page.text_content("#tag-after")


def give(visitor: Any, *files: tuple[str, bytes]) -> None:
    """Choose several files at once."""
    chosen = [{"name": name, "mimeType": "image/png", "buffer": data} for name, data in files]
    visitor.page.set_input_files("#file", chosen)


def test_what_is_bicubic_is_called_bicubic(visit):
    visitor = visit()
    page = visitor.page
    page.route(TILES_OF_ROUGH, lambda route: None)  # a server that does not reply yet
    give(visitor, ("hills.png", picture(*SIZE)))
    page.wait_for_selector("#stage[data-sharp=false]")
    page.keyboard.press("2")
    page.wait_for_selector("#stage[data-mode=divider]")
    visitor.until(lambda: labels(visitor) == ("bicubic", "bicubic, srno · rough is coming"))
    page.unroute_all()
    with visitor.moving():
        page.keyboard.press("+")
    assert labels(visitor) == ("bicubic", "srno · rough")


def test_below_x1_both_sides_are_bicubic(visit):
    visitor = visit(viewport={"width": 300, "height": 240})
    visitor.open(picture(320, 240, "L"))
    visitor.choose("divider")
    assert visitor.zoom < 1
    assert labels(visitor) == ("bicubic", "bicubic")
    assert not any("source=rough" in url for url in visitor.asked)


def test_a_failure_is_shown_until_it_is_dismissed_and_the_label_says_bicubic(visit):
    visitor = visit()
    page = visitor.page
    page.route(TILES_OF_ROUGH, lambda route: route.fulfill(status=500, json={"error": "it broke"}))
    give(visitor, ("hills.png", picture(*SIZE)))
    alert = page.get_by_role("alert").filter(has_text="it broke")
    alert.wait_for()
    visitor.until(lambda: labels(visitor)[1] == "bicubic, not srno · rough")
    with page.expect_download() as download:
        page.keyboard.press("s")  # does not wait for pixels that will not come
    assert download.value.suggested_filename.endswith("_bicubic.png")
    page.get_by_role("button", name="Dismiss this message").click()
    assert not alert.is_visible()
    page.unroute_all()
    with visitor.moving():
        page.keyboard.press("+")
    assert labels(visitor)[1] == "srno · rough"
    visitor.errors.clear()


def test_a_view_can_be_stopped_and_a_movement_starts_it_again(visit):
    visitor = visit()
    page = visitor.page
    page.route(TILES_OF_ROUGH, lambda route: None)
    give(visitor, ("hills.png", picture(*SIZE)))
    page.wait_for_selector("#stage[data-sharp=false]")
    page.keyboard.press("Escape")
    visitor.until(lambda: labels(visitor)[1] == "bicubic, not srno · rough")
    page.keyboard.press("+")
    visitor.until(lambda: labels(visitor)[1] == "bicubic, srno · rough is coming")
    page.keyboard.press("+")
    page.keyboard.press("Escape")  # before the zoom has come to its end
    visitor.until(lambda: labels(visitor)[1] == "bicubic, not srno · rough")
    asked = len(visitor.asked)
    page.wait_for_timeout(500)
    assert len(visitor.asked) == asked
    page.unroute_all()
    with visitor.moving():
        page.keyboard.press("+")


def test_models_and_filters_can_be_compared(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.choose("side")
    for source, name in (("nearest", "nearest neighbour"), ("plain", "srno · plain")):
        visitor.page.locator("#against").select_option(source)
        visitor.until(lambda name=name: labels(visitor) == (name, "srno · rough"))
        visitor.sharp()
        width = visitor.view["width"]
        assert np.array_equal(visitor.canvas()[:, :width], visitor.expected(source, SIZE))
    visitor.page.locator("#model").select_option("plain")  # never the same model on both sides
    visitor.until(lambda: labels(visitor) == ("bicubic", "srno · plain"))


def test_space_shows_the_other_side_while_it_is_held(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    after = visitor.canvas()
    visitor.page.keyboard.down(" ")
    visitor.until(lambda: labels(visitor)[1] == "bicubic")
    visitor.page.wait_for_selector("#stage[data-drawn=true]")
    assert not np.array_equal(visitor.canvas(), after)
    visitor.page.keyboard.up(" ")
    visitor.until(lambda: labels(visitor)[1] == "srno · rough")
    visitor.sharp()
    assert np.array_equal(visitor.canvas(), after)


@pytest.mark.parametrize(("source", "name"), [("nearest", "nearest neighbour"), ("plain", "srno · plain")])
def test_space_computes_a_side_that_is_not_shown_yet(visit, source, name):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.page.locator("#against").select_option(source)
    visitor.page.locator("#stage").focus()
    visitor.page.keyboard.down(" ")
    visitor.until(lambda: labels(visitor)[1] == name)
    visitor.sharp()
    assert np.array_equal(visitor.canvas(), visitor.expected(source, SIZE))
    visitor.page.keyboard.up(" ")
    visitor.until(lambda: labels(visitor)[1] == "srno · rough")


def test_keys_choose_modes_and_are_listed(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    for key, mode in (("2", "divider"), ("3", "side"), ("4", "lens"), ("1", "off")):
        visitor.page.keyboard.press(key)
        visitor.page.wait_for_selector(f"#stage[data-mode={mode}]")
    visitor.page.keyboard.press("?")
    assert "hold to see the other side" in visitor.page.get_by_role("dialog").text_content()


def test_keys_belong_to_the_picture_after_a_control_was_clicked(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    page = visitor.page
    page.locator("#against").select_option("nearest")
    page.keyboard.press("2")
    page.wait_for_selector("#stage[data-mode=divider]")
    with visitor.moving():
        page.click("#zoom-in")
    zoom = visitor.zoom
    page.keyboard.down(" ")
    visitor.until(lambda: labels(visitor)[1] == "nearest neighbour")
    page.keyboard.up(" ")
    visitor.choose("side")
    with visitor.moving():
        page.keyboard.press("ArrowRight")  # moves the picture, not the choice
    assert page.get_attribute("#stage", "data-mode") == "side"
    assert visitor.zoom == zoom


def test_a_file_that_cannot_be_opened_does_not_stop_the_others(visit):
    visitor = visit()
    give(visitor, ("bad.png", b"nothing"), ("one.png", picture(*SIZE)), ("two.png", picture(40, 30)))
    visitor.sharp()
    page = visitor.page
    assert page.text_content("#name") == "one.png"
    assert page.get_by_role("alert").filter(has_text="bad.png").is_visible()
    assert page.text_content("#queue-place") == "1 / 2"
    page.keyboard.press("]")
    visitor.until(lambda: page.text_content("#name") == "two.png")
    visitor.sharp()
    assert page.title() == "two.png – srno"
    visitor.errors = [error for error in visitor.errors if "400" not in error]


def test_the_back_button_and_a_reload_restore_picture_and_view(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    page, fitted = visitor.page, visitor.view
    with visitor.moving():
        page.mouse.dblclick(450, 350)
    visitor.choose("divider")
    near = visitor.view
    page.reload()
    page.wait_for_selector("body[data-ready]")
    visitor.sharp()
    assert visitor.view == near
    assert page.text_content("#name") == "hills.png"
    assert page.get_attribute("#stage", "data-mode") == "divider"
    page.go_back()
    page.wait_for_selector("#stage[data-mode=off]")
    with visitor.moving():
        page.go_back()
    assert visitor.view == fitted
    page.go_back()
    page.wait_for_selector("#welcome:not([hidden])")


def test_a_reload_keeps_the_row_of_pictures(visit):
    visitor = visit()
    give(visitor, *((f"{name}.png", picture(*SIZE, seed=i)) for i, name in enumerate(("one", "two", "three"))))
    visitor.sharp()
    page = visitor.page
    visitor.until(lambda: page.evaluate("sessionStorage.getItem('srno-row')").count("key") == 3)
    page.reload()
    page.wait_for_selector("body[data-ready]")
    visitor.sharp()
    assert (page.text_content("#name"), page.text_content("#queue-place")) == ("one.png", "1 / 3")
    page.keyboard.press("]")
    visitor.until(lambda: page.text_content("#name") == "two.png")
    visitor.sharp()
    assert page.text_content("#queue-place") == "2 / 3"
    page.go_back()
    visitor.until(lambda: page.text_content("#name") == "one.png")
    assert page.text_content("#queue-place") == "1 / 3"


def test_settings_are_remembered(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.choose("lens")
    visitor.page.locator("#model").select_option("plain")
    visitor.page.goto(visitor.address)
    visitor.page.wait_for_selector("body[data-ready]")
    visitor.open(picture(*SIZE, seed=3))
    assert visitor.page.get_attribute("#stage", "data-mode") == "lens"
    assert labels(visitor)[1] == "srno · plain"


def test_a_finger_moves_the_lens_and_not_the_picture(visit):
    visitor = visit(**PHONE)
    visitor.open(picture(*SIZE))
    visitor.choose("lens")
    before, session = visitor.view, visitor.page.context.new_cdp_session(visitor.page)
    for kind, places in (("Start", [(200, 400)]), ("Move", [(120, 380)]), ("End", [])):
        points = [{"x": x, "y": y} for x, y in places]
        session.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    visitor.until(lambda: "translate(15px" in (visitor.page.get_attribute("#lens", "style") or ""))
    assert visitor.view == before


def test_the_page_opens_without_the_server_and_waits_for_it(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    context.set_offline(True)
    page.reload()
    page.get_by_role("alert").filter(has_text="does not answer").wait_for()
    assert page.get_by_role("heading", name="A picture is a function.").is_visible()
    context.set_offline(False)
    page.wait_for_selector("body[data-ready]")
    assert page.get_by_role("alert").text_content() == ""
    context.close()


def test_a_coarse_window_comes_first_and_is_replaced(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    levels = [url.partition("level=")[2].partition("%2C")[0] for url in visitor.asked if "source=rough" in url]
    assert int(levels[0]) == pytest.approx(visitor.view["level"] / 4, abs=1)
    assert set(levels[1:]) == {str(visitor.view["level"])}
    assert np.array_equal(visitor.canvas(), visitor.expected("rough", SIZE))


def test_a_picture_without_transparency_has_no_checkerboard_and_others_only_under_the_picture(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    assert visitor.page.locator(".chequer:visible").count() == 0
    visitor.open(picture(20, 60, "RGBA"))
    box, stage = (visitor.page.locator(name).first.bounding_box() for name in (".chequer", "#stage"))
    assert box["width"] == visitor.view["level"] < stage["width"] / 2


def test_the_saved_view_of_a_comparison_names_both_sides(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.choose("divider")
    with visitor.page.expect_download() as download:
        visitor.page.keyboard.press("s")
    assert download.value.suggested_filename.endswith("x_bicubic_rough.png")
    assert Image.open(download.value.path()).size[1] == visitor.view["height"]
