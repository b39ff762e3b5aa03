"""The page in a real browser."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import CHROMIUM, FLAGS, Visitor, near
from PIL import Image
from serving import picture

from srno.cli import main

pytestmark = pytest.mark.browser

SIZE = (64, 48)
WINDOW = {"width": 900, "height": 640}
PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 700}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"no {CHROMIUM}: apt-get install chromium")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Callable[..., Visitor]]:
    """Open the page as someone with these settings; nothing may go wrong on it that nobody asked for."""
    visitors: list[Visitor] = []

    def visit(**settings: Any) -> Visitor:
        page = browser.new_context(**{"viewport": WINDOW, **settings}).new_page()
        visitors.append(Visitor(page, address))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        visitor.page.context.close()
        assert visitor.errors == []


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
    someone.page.mouse.move(450, 350)
    someone.page.mouse.down()
    someone.page.mouse.move(400, 330, steps=4)
    someone.page.mouse.up()
    someone.page.wait_for_timeout(200)
    someone.sharp()
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
    someone.page.keyboard.press("+")
    someone.page.wait_for_timeout(100)
    someone.sharp()
    assert someone.zoom > 10
    asked = len(someone.requests)
    someone.page.keyboard.press("0")
    someone.page.wait_for_timeout(500)
    someone.sharp()
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
    someone.page.mouse.move(x, y)
    someone.page.mouse.down()
    someone.page.mouse.move(270, y, steps=5)
    someone.page.mouse.up()
    someone.page.wait_for_timeout(200)
    assert handle.get_attribute("aria-valuenow") == "30"
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
    someone.page.wait_for_timeout(200)
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


def test_an_export_is_what_srno_upscale_writes(visit, models, tmp_path):
    someone, data = visit(), picture(*SIZE)
    someone.open(data)
    page = someone.page
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
    someone = visit()
    someone.open(picture(*SIZE))
    page = someone.page
    page.get_by_role("button", name="Export…").click()
    page.get_by_label("Scale", exact=True).fill("200")
    page.get_by_role("button", name="Export", exact=True).click()
    page.wait_for_selector("text=/\\d+ %/")
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("text=Stopped.")
    assert page.get_by_role("button", name="Export", exact=True).is_enabled()


def test_this_view_is_saved_as_it_is_seen(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    someone.wheel(-400, 450, 350)
    with someone.page.expect_download() as download:
        someone.page.get_by_role("button", name="This view").click()
    saved = np.asarray(Image.open(download.value.path()).convert("RGB"))
    assert np.array_equal(saved, someone.expected("rough", SIZE))
    assert download.value.suggested_filename.startswith("hills_view_")


@pytest.mark.parametrize(
    ("name", "data", "words", "travels"),
    [
        ("notes.png", b"not a picture at all", "not a picture in a known format", True),
        ("cut.png", picture(90, 90)[:9000], "damaged or cut short", True),
        ("nothing.png", b"", "is empty", False),
        ("long.png", b"\0" * 200_001, "the limit is 0.2 MB", False),
        ("wide.png", picture(400, 300, "L"), "400 × 300", False),
    ],
    ids=["no picture", "truncated", "empty", "too many bytes", "too many pixels"],
)
def test_what_cannot_be_opened_is_told_on_the_page(visit, name, data, words, travels):
    someone = visit()
    someone.page.set_input_files("#file", {"name": name, "mimeType": "image/png", "buffer": data})
    alert = someone.page.get_by_role("alert").filter(has_text=words)
    alert.wait_for()
    assert name in alert.text_content()
    assert any(url.endswith("/api/images") for url in someone.requests) == travels
    if travels:
        someone.errors = [error for error in someone.errors if "400" not in error]
    assert someone.page.get_by_role("button", name="Choose a picture").is_visible()


def test_an_example_is_one_click_away(visit):
    someone = visit()
    someone.page.get_by_role("button", name="soft hills").click()
    someone.sharp()
    assert someone.page.text_content("#name") == "soft-hills.png"


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_pictures_can_be_dropped_and_pasted(visit, way):
    someone = visit()
    script = """([way, bytes]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], "given.png", { type: "image/png" }));
        const event = way === "drop"
            ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
            : new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
        document.body.dispatchEvent(event);
    }"""
    someone.page.evaluate(script, [way, list(picture(*SIZE))])
    someone.sharp()
    assert someone.page.text_content("#name") == "given.png"


def test_the_keyboard_is_enough(visit):
    someone, page = visit(), None
    page = someone.page
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "choose"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the example
    someone.sharp()
    assert page.evaluate("document.activeElement.id") == "stage"
    fitted = someone.zoom
    for _ in range(4):
        page.keyboard.press("+")
    page.wait_for_timeout(500)
    someone.sharp()
    assert someone.zoom == pytest.approx(4 * fitted, rel=0.01)
    before = someone.view
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(200)
    someone.sharp()
    assert someone.view["left"] < before["left"]
    assert someone.view["top"] < before["top"]
    page.keyboard.press("-")
    page.keyboard.press("0")
    page.wait_for_timeout(800)
    someone.sharp()
    assert someone.zoom == fitted
    page.get_by_role("radio", name="srno").focus()
    page.keyboard.press("ArrowRight")
    someone.sharp()
    divider = page.get_by_role("slider", name="Divider")
    divider.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert divider.get_attribute("aria-valuenow") == "54"
    page.keyboard.press("Home")
    assert divider.get_attribute("aria-valuenow") == "0"
    page.get_by_role("button", name="Export…").press("Enter")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "open-export"


def test_screen_readers_hear_what_happens(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    live = someone.page.locator("#live")
    assert "Zoom 12.2, centre at 32, 24" in live.text_content()
    stage = someone.page.get_by_role("application", name="hills.png")
    assert "Arrow keys move" in someone.page.text_content(f"#{stage.get_attribute('aria-describedby')}")
    for role, name in [("button", "Zoom in"), ("button", "Zoom out"), ("button", "Show the whole picture")]:
        assert someone.page.get_by_role(role, name=name).is_visible()
    someone.page.get_by_role("button", name="Zoom in").click()
    someone.page.wait_for_timeout(400)
    someone.sharp()
    assert "Zoom 24.3" in live.text_content()


def test_two_fingers_on_a_phone(visit):
    someone = visit(**PHONE)
    someone.open(picture(*SIZE))
    page, fitted = someone.page, someone.zoom
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *places: tuple[float, float]) -> None:
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (150, 400), (220, 400))
    for spread in range(0, 80, 10):
        touch("touchMove", (150 - spread, 400), (220 + spread, 400))
    touch("touchEnd")
    page.wait_for_timeout(200)
    someone.sharp()
    assert someone.zoom == pytest.approx(fitted * 210 / 70, rel=0.05)
    assert np.array_equal(someone.canvas(), someone.expected("rough", SIZE))
    before = someone.view
    touch("touchStart", (200, 400))
    touch("touchMove", (170, 400))
    touch("touchMove", (150, 400))
    touch("touchEnd")
    page.wait_for_timeout(200)
    someone.sharp()
    assert someone.view["left"] == before["left"] - 50
    zoom = someone.zoom
    for _ in range(2):
        page.touchscreen.tap(180, 420)
    page.wait_for_timeout(600)
    someone.sharp()
    assert someone.zoom == pytest.approx(2 * zoom, rel=0.01)
    for name in ("Zoom in", "This view", "Export…"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert min(box["width"], box["height"]) >= 40
        assert box["x"] + box["width"] <= 375


def test_a_double_click_goes_in_and_with_shift_out(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    fitted = someone.zoom
    for keys, factor in (([], 2), ([], 4), (["Shift"], 2)):
        for key in keys:
            someone.page.keyboard.down(key)
        someone.page.mouse.dblclick(450, 350)
        someone.page.wait_for_timeout(600)
        someone.sharp()
        assert someone.zoom == pytest.approx(factor * fitted, rel=0.01)


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
    someone.page.mouse.wheel(0, -300)
    someone.page.wait_for_timeout(600)
    asked = [url for url in someone.requests if "/tile?source=rough" in url]
    stretched, sharp = someone.canvas().astype(int), someone.expected("rough", SIZE)
    assert 0 < np.abs(stretched - sharp).mean() < 12  # the last known pixels, in the right place
    someone.page.mouse.wheel(0, -300)
    someone.page.wait_for_timeout(200)
    assert cancelled
    assert set(cancelled) <= set(asked)
    someone.page.unroute_all()
    someone.page.keyboard.press("0")
    someone.page.wait_for_timeout(500)
    someone.sharp()


def test_a_picture_that_the_server_had_to_forget_is_brought_again(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    answers = iter([404])

    def forget(route: Any) -> None:
        if status := next(answers, None):
            route.fulfill(status=status, json={"error": "gone"})
        else:
            route.continue_()

    someone.page.route("**/tile?source=rough*", forget)
    someone.wheel(-300, 450, 350)
    assert len([url for url in someone.requests if url.endswith("/api/images")]) == 2
    someone.errors = [error for error in someone.errors if "404" not in error]


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


def test_people_who_dislike_motion_get_none(visit):
    someone = visit(reduced_motion="reduce")
    someone.open(picture(*SIZE))
    fitted = someone.zoom
    someone.page.keyboard.press("+")
    assert someone.zoom == pytest.approx(fitted * 2**0.5, rel=0.01)  # at once


def test_dark_and_light_follow_the_system(visit):
    grounds = [
        visit(color_scheme=scheme).page.evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("dark", "light")
    ]
    brightness = [sum(int(number) for number in ground.strip("rgb()").split(",")) for ground in grounds]
    assert brightness[0] < 100 < 600 < brightness[1]


def test_the_page_is_small_and_alone(visit, address):
    someone = visit()
    someone.page.wait_for_load_state("networkidle")
    assert all(url.startswith(address) for url in someone.requests)
    pieces = [url for url in someone.requests if "/api/" not in url]
    sizes = [len(someone.page.request.get(url).body()) for url in pieces]
    assert len(pieces) >= 10
    assert sum(sizes) < 100_000


def test_two_tabs_at_once(visit):
    one, other = visit(), visit()
    for visitor, seed in ((one, 1), (other, 2)):
        visitor.page.set_input_files(
            "#file", {"name": "a.png", "mimeType": "image/png", "buffer": picture(*SIZE, seed=seed)}
        )
    for visitor in (one, other):
        visitor.sharp()
        assert np.array_equal(visitor.canvas(), visitor.expected("rough", SIZE))
