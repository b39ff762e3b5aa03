"""The page in a real browser: what it shows is what was computed."""

import io
from typing import Any

import numpy as np
import pytest
from browsing import SIZE, WINDOW, near
from PIL import Image
from serving import picture

pytestmark = pytest.mark.browser


def test_a_window_shows_exactly_the_pixels_that_were_computed_for_it(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    fitted = someone.zoom
    assert np.array_equal(someone.canvas(), someone.expected("rough", SIZE))
    someone.wheel(-700, 300, 400)
    assert someone.zoom == pytest.approx(fitted * 1.0018**400, rel=0.01)  # a turn counts as 400 at most
    someone.wheel(-300, 500, 300)
    assert someone.zoom > 30
    assert np.array_equal(someone.canvas(), someone.expected("rough", SIZE))
    assert someone.page.title() == "hills.png – srno"


def test_what_lies_under_the_pointer_stays_there(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    someone.wheel(-300, 500, 300)  # now it fills the window
    before = someone.page.text_content("#place")
    someone.wheel(-400, 500, 300)
    numbers = [
        float(text.strip("xy "))
        for place in (before, someone.page.text_content("#place"))
        for text in place.split("  ")
    ]
    assert numbers[:2] == pytest.approx(numbers[2:], abs=0.2)


def test_dragging_moves_the_picture_and_keeps_what_is_known(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    someone.wheel(-400, 450, 350)
    before, asked = someone.view, len(someone.requests)
    known = someone.canvas()
    with someone.moving():
        someone.drag((450, 350), (400, 330))
    after = someone.view
    assert (after["left"] - before["left"], after["top"] - before["top"], after["level"]) == (-50, -20, before["level"])
    now = someone.canvas()
    assert np.array_equal(now[:-20, :-50], known[20:, 50:])
    assert np.array_equal(now, someone.expected("rough", SIZE))
    asked = len([url for url in someone.requests[asked:] if "source=rough" in url])
    assert 0 < asked < 15  # two edges, not the whole window


def test_a_level_that_was_seen_is_not_asked_for_again(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    fitted = someone.canvas()
    with someone.moving():
        someone.page.keyboard.press("+")
    assert someone.zoom > 10
    asked = len(someone.requests)
    with someone.moving():
        someone.page.keyboard.press("0")
    assert np.array_equal(someone.canvas(), fitted)
    assert len(someone.requests) == asked


def test_the_divider_has_bicubic_on_its_left(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    someone.wheel(-300, 450, 350)
    someone.choose("divider")
    handle = someone.page.get_by_role("slider", name="Divider")
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    someone.drag((x, y), (270, y))
    someone.until(lambda: handle.get_attribute("aria-valuenow") == "30")
    someone.sharp()
    seen = someone.canvas()
    assert near(seen[:, :270], someone.expected("bicubic", SIZE)[:, :270])
    assert np.array_equal(seen[:, 270:], someone.expected("rough", SIZE)[:, 270:])


def test_side_by_side_shows_the_same_part_twice(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    someone.choose("side")
    someone.wheel(-300, 700, 300)
    seen, width = someone.canvas(), someone.view["width"]
    assert width == WINDOW["width"] // 2 - 1
    assert near(seen[:, :width], someone.expected("bicubic", SIZE))
    assert np.array_equal(seen[:, -width:], someone.expected("rough", SIZE))


def test_the_lens_follows_the_pointer(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    someone.wheel(-300, 450, 350)
    someone.choose("lens")
    someone.page.mouse.move(600, 400)
    someone.until(lambda: "translate(450px" in (someone.page.get_attribute("#lens", "style") or ""))
    someone.sharp()
    seen, bicubic, operator = someone.canvas(), someone.expected("bicubic", SIZE), someone.expected("rough", SIZE)
    top = WINDOW["height"] - someone.view["height"]
    y, x = np.ogrid[: seen.shape[0], : seen.shape[1]]
    distance = np.hypot(x - 600, y - (400 - top))
    assert np.array_equal(seen[distance < 145], operator[distance < 145])
    assert near(seen[distance > 155], bicubic[distance > 155])


def test_another_model_gives_other_pixels(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    someone.wheel(-300, 450, 350)
    rough = someone.canvas()
    someone.page.get_by_label("Model").select_option("plain")
    someone.sharp()
    plain = someone.canvas()
    assert np.array_equal(plain, someone.expected("plain", SIZE))
    assert np.abs(plain.astype(int) - rough).mean() > 1
    someone.page.get_by_label("Model").select_option("rough")
    someone.sharp()
    assert np.array_equal(someone.canvas(), rough)


def test_the_centre_comes_first(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    asked = len(someone.requests)
    someone.wheel(-300, 450, 350)
    view, distances = someone.view, []
    for url in someone.requests[asked:]:
        left, top, width, height = (int(number) for number in url.partition("rect=")[2].split("%2C"))
        x, y = left + width / 2 + view["left"], top + height / 2 + view["top"]
        distances.append(np.hypot(x - view["width"] / 2, y - view["height"] / 2))
    assert len(distances) == 20  # five by four tiles of at most 192 pixels fill the window exactly
    assert distances == sorted(distances)


def test_moving_on_calls_off_what_is_no_longer_wanted(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    cancelled: list[str] = []
    someone.page.on("requestfailed", lambda request: cancelled.append(request.url))
    someone.page.route("**/tile?source=rough*", lambda route: None)  # a server that takes its time
    someone.page.mouse.move(450, 350)
    with someone.page.expect_request("**/tile?source=rough*"):
        someone.page.mouse.wheel(0, -300)
    someone.page.wait_for_selector("#stage[data-drawn=true][data-sharp=false]")
    asked = [url for url in someone.requests if "/tile?source=rough" in url]
    stretched, sharp = someone.canvas().astype(int), someone.expected("rough", SIZE)
    assert 0 < np.abs(stretched - sharp).mean() < 12  # the last known pixels, in the right place
    someone.page.mouse.wheel(0, -300)
    someone.until(lambda: len(cancelled) > 0)
    assert set(cancelled) <= set(asked)
    someone.page.unroute_all()
    with someone.moving():
        someone.page.keyboard.press("0")


def test_transparency_shines_through(visit):
    someone = visit()
    samples = np.full((20, 20, 4), 255, np.uint8)
    samples[:, :10, 3] = 0
    stream = io.BytesIO()
    Image.fromarray(samples).save(stream, "PNG")
    someone.open(stream.getvalue())
    someone.wheel(-200, 450, 350)
    row = "[...document.getElementById('canvas').getContext('2d').getImageData(0, 300, 900, 1).data]"
    alpha = someone.page.evaluate(row)[3::4]
    assert (alpha[100], alpha[-100]) == (0, 255)


def test_two_tabs_at_once(visit):
    one, other = visit(), visit()
    for visitor, seed in ((one, 1), (other, 2)):
        visitor.page.set_input_files(
            "#file", {"name": "a.png", "mimeType": "image/png", "buffer": picture(*SIZE, seed=seed)}
        )
    for visitor in (one, other):
        visitor.sharp()
        assert np.array_equal(visitor.canvas(), visitor.expected("rough", SIZE))


def test_a_picture_that_the_server_had_to_forget_is_brought_again(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    fitted = someone.zoom
    answers = iter([404])

    def forget(route: Any) -> None:
        if status := next(answers, None):
            route.fulfill(status=status, json={"error": "gone"})
        else:
            route.continue_()

    someone.page.route("**/tile?source=rough*", forget)
    someone.wheel(-300, 450, 350)
    assert someone.zoom > 1.5 * fitted  # at the place where one was
    assert np.array_equal(someone.canvas(), someone.expected("rough", SIZE))
    assert len([url for url in someone.requests if url.endswith("/api/images")]) == 2
    someone.errors = [error for error in someone.errors if "404" not in error]
