"""The page in a real browser: the canvas shows the pixels that the server computes."""

import io
import re
from typing import Any

import numpy as np
import pytest
from browsing import SIZE, WINDOW, near
from PIL import Image
from serving import picture

from srno.server.studio import Studio

pytestmark = pytest.mark.browser


def test_the_canvas_equals_the_pixels_that_the_server_computes(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    fitted = visitor.zoom
    assert np.array_equal(visitor.canvas(), visitor.expected("rough", SIZE))
    visitor.wheel(-700, 300, 400)
    assert visitor.zoom == pytest.approx(fitted * 1.0018**400, rel=0.01)  # a turn counts as 400 at most
    visitor.wheel(-300, 500, 300)
    assert visitor.zoom > 30
    assert np.array_equal(visitor.canvas(), visitor.expected("rough", SIZE))
    assert visitor.page.title() == "hills.png – srno"


def test_zooming_keeps_the_point_under_the_pointer(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.wheel(-300, 500, 300)  # now it fills the window
    before = visitor.page.text_content("#place")
    visitor.wheel(-400, 500, 300)
    numbers = [
        float(text.strip("xy "))
        for place in (before, visitor.page.text_content("#place"))
        for text in place.split("  ")
    ]
    assert numbers[:2] == pytest.approx(numbers[2:], abs=0.2)


def test_dragging_moves_the_picture_and_reuses_tiles(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.wheel(-400, 450, 350)
    before, requested = visitor.view, len(visitor.requests)
    old = visitor.canvas()
    with visitor.moving():
        visitor.drag((450, 350), (400, 330))
    after = visitor.view
    assert (after["left"] - before["left"], after["top"] - before["top"], after["level"]) == (-50, -20, before["level"])
    new = visitor.canvas()
    assert np.array_equal(new[:-20, :-50], old[20:, 50:])
    assert np.array_equal(new, visitor.expected("rough", SIZE))
    requested = len([url for url in visitor.requests[requested:] if "source=rough" in url])
    assert 0 < requested < 15  # two edges, not the whole window


def test_a_cached_level_is_not_requested_again(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    fitted = visitor.canvas()
    with visitor.moving():
        visitor.page.keyboard.press("+")
    assert visitor.zoom > 10
    requested = visitor.asked
    with visitor.moving():
        visitor.page.keyboard.press("0")
    assert np.array_equal(visitor.canvas(), fitted)
    assert visitor.asked == requested


def test_the_divider_has_bicubic_on_its_left(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.wheel(-300, 450, 350)
    visitor.choose("divider")
    handle = visitor.page.get_by_role("slider", name="Divider")
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    visitor.drag((x, y), (270, y))
    visitor.until(lambda: handle.get_attribute("aria-valuenow") == "30")
    visitor.sharp()
    seen = visitor.canvas()
    assert near(seen[:, :270], visitor.expected("bicubic", SIZE)[:, :270])
    assert np.array_equal(seen[:, 270:], visitor.expected("rough", SIZE)[:, 270:])


def test_side_by_side_shows_the_same_part_twice(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.choose("side")
    visitor.wheel(-300, 700, 300)
    seen, width = visitor.canvas(), visitor.view["width"]
    assert width == WINDOW["width"] // 2 - 1
    assert near(seen[:, :width], visitor.expected("bicubic", SIZE))
    assert np.array_equal(seen[:, -width:], visitor.expected("rough", SIZE))


def test_changes_of_the_mode_leave_the_picture_where_it_is(visit):
    """Panes of an odd width put the middle between two pixels."""
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.wheel(-700, 300, 400)
    before = visitor.view
    for _ in range(2):
        visitor.choose("side")
        assert visitor.view["width"] % 2
        visitor.choose("divider")
    assert visitor.view == before


def test_the_lens_follows_the_pointer(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.wheel(-300, 450, 350)
    visitor.choose("lens")
    visitor.page.mouse.move(600, 400)
    visitor.until(lambda: "translate(450px" in (visitor.page.get_attribute("#lens", "style") or ""))
    visitor.sharp()
    seen, bicubic, operator = visitor.canvas(), visitor.expected("bicubic", SIZE), visitor.expected("rough", SIZE)
    top = WINDOW["height"] - visitor.view["height"]
    y, x = np.ogrid[: seen.shape[0], : seen.shape[1]]
    distance = np.hypot(x - 600, y - (400 - top))
    assert np.array_equal(seen[distance < 145], operator[distance < 145])
    assert near(seen[distance > 155], bicubic[distance > 155])


def test_choosing_another_model_changes_the_pixels(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    visitor.wheel(-300, 450, 350)
    rough = visitor.canvas()
    visitor.page.get_by_label("Model").select_option("plain")
    visitor.sharp()
    plain = visitor.canvas()
    assert np.array_equal(plain, visitor.expected("plain", SIZE))
    assert np.abs(plain.astype(int) - rough).mean() > 1
    visitor.page.get_by_label("Model").select_option("rough")
    visitor.sharp()
    assert np.array_equal(visitor.canvas(), rough)


def test_tiles_are_requested_from_the_centre_outwards(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    requested = len(visitor.asked)
    visitor.wheel(-300, 450, 350)
    view, distances = visitor.view, []
    for url in (url for url in visitor.asked[requested:] if "source=rough" in url):
        rect = re.search(r"rect=([^&]+)", url)
        assert rect, url
        left, top, width, height = (int(number) for number in rect[1].split("%2C"))
        x, y = left + width / 2 + view["left"], top + height / 2 + view["top"]
        distances.append(np.hypot(x - view["width"] / 2, y - view["height"] / 2))
    assert len(distances) == 20  # five by four tiles of at most 192 pixels fill the window exactly
    assert distances == sorted(distances)


def test_the_tiles_of_the_end_of_a_zoom_are_requested_when_it_begins(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    before = visitor.page.get_attribute("#stage", "data-view")
    visitor.page.evaluate("""() => {
        const original = window.fetch;
        window.asked = [];
        window.fetch = (address, options) => {
            window.asked.push([address, document.getElementById("stage").dataset.view]);
            return original(address, options);
        };
    }""")
    with visitor.moving():
        visitor.page.keyboard.press("+")
    tiles = [(url, view) for url, view in visitor.page.evaluate("window.asked") if "source=rough" in url]
    assert f"level={visitor.view['level']}%2C" in tiles[0][0]
    assert tiles[0][1] == before  # nothing has moved yet


def test_moving_cancels_requests_that_are_no_longer_needed(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    cancelled: list[str] = []
    visitor.page.on("requestfailed", lambda request: cancelled.append(request.url))
    visitor.page.route("**/tile?source=rough*", lambda route: None)  # a server that never replies
    visitor.page.mouse.move(450, 350)
    with visitor.page.expect_request("**/tile?source=rough*"):
        visitor.page.mouse.wheel(0, -300)
    visitor.page.wait_for_selector("#stage[data-drawn=true][data-sharp=false]")
    requested = [url for url in visitor.requests if "/tile?source=rough" in url]
    stretched, sharp = visitor.canvas().astype(int), visitor.expected("rough", SIZE)
    assert 0 < np.abs(stretched - sharp).mean() < 12  # the last pixels, stretched in the right place
    visitor.page.mouse.wheel(0, -300)
    visitor.until(lambda: len(cancelled) > 0)
    assert set(cancelled) <= set(requested)
    visitor.page.unroute_all()
    with visitor.moving():
        visitor.page.keyboard.press("0")


def test_transparent_pixels_are_transparent_on_the_canvas(visit):
    visitor = visit()
    samples = np.full((20, 20, 4), 255, np.uint8)
    samples[:, :10, 3] = 0
    stream = io.BytesIO()
    Image.fromarray(samples).save(stream, "PNG")
    visitor.open(stream.getvalue())
    visitor.wheel(-200, 450, 350)
    row = "[...document.getElementById('canvas').getContext('2d').getImageData(0, 300, 900, 1).data]"
    alpha = visitor.page.evaluate(row)[3::4]
    assert (alpha[100], alpha[-100]) == (0, 255)


def test_two_tabs_show_their_own_pictures(visit):
    one, other = visit(), visit()
    for visitor, seed in ((one, 1), (other, 2)):
        visitor.page.set_input_files(
            "#file", {"name": "a.png", "mimeType": "image/png", "buffer": picture(*SIZE, seed=seed)}
        )
    for visitor in (one, other):
        visitor.sharp()
        assert np.array_equal(visitor.canvas(), visitor.expected("rough", SIZE))


def drop_everything(served: Studio) -> None:
    """Fill the memory for a moment."""
    with served.hold(served.memory.budget, "everything"):
        pass


def uploads(visitor: Any) -> int:
    return len([url for url in visitor.requests if url.endswith("/api/images")])


def test_a_picture_that_the_server_dropped_is_uploaded_again(visit, served):
    visitor = visit()
    visitor.open(picture(*SIZE))
    fitted = visitor.zoom
    drop_everything(served)
    visitor.wheel(-300, 450, 350)
    assert visitor.zoom > 1.5 * fitted  # the view is kept
    assert np.array_equal(visitor.canvas(), visitor.expected("rough", SIZE))
    assert uploads(visitor) == 2
    assert visitor.page.locator("#messages li").count() == 0
    visitor.errors = [error for error in visitor.errors if "404" not in error]


def test_a_dropped_picture_comes_from_the_browser_if_its_file_is_gone(visit, served, tmp_path):
    visitor, path = visit(), tmp_path / "hills.png"
    path.write_bytes(picture(*SIZE))
    visitor.page.set_input_files("#file", path)
    visitor.sharp()
    visitor.until(lambda: "picture=" in visitor.page.url)  # the browser has a copy
    path.unlink()
    drop_everything(served)
    visitor.wheel(-300, 450, 350)
    assert uploads(visitor) == 2
    assert visitor.page.locator("#messages li").count() == 0
    visitor.errors = [error for error in visitor.errors if "404" not in error]


def test_an_export_of_a_dropped_picture_uploads_it_first(visit, served):
    visitor = visit()
    visitor.open(picture(*SIZE))
    drop_everything(served)
    visitor.page.keyboard.press("e")
    visitor.page.locator("#outcome").filter(has_text="About").wait_for()
    drop_everything(served)
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="Export", exact=True).click()
    assert Image.open(download.value.path()).size == (SIZE[0] * 4, SIZE[1] * 4)
    assert uploads(visitor) == 3
    visitor.errors = [error for error in visitor.errors if "404" not in error]
