"""The page in a real browser: every way in, every hand, every eye and ear."""

import time
from typing import Any

import numpy as np
import pytest
from browsing import PHONE, SIZE
from serving import picture

pytestmark = pytest.mark.browser


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
    someone = visit()
    page = someone.page
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "choose"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the example
    someone.sharp()
    assert page.evaluate("document.activeElement.id") == "stage"
    fitted = someone.zoom
    with someone.moving():
        for _ in range(4):
            page.keyboard.press("+")
    assert someone.zoom == pytest.approx(4 * fitted, rel=0.01)
    before = someone.view
    with someone.moving():
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
    assert someone.view["left"] < before["left"]
    assert someone.view["top"] < before["top"]
    with someone.moving():
        page.keyboard.press("-")
        page.keyboard.press("0")
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
    with someone.moving():
        someone.page.get_by_role("button", name="Zoom in").click()
    assert "Zoom 24.3" in live.text_content()


class Fingers:
    """They touch the page at times of their own, however long the machine takes over it."""

    def __init__(self, page: Any) -> None:
        self.session, self.time = page.context.new_cdp_session(page), time.time()

    def __call__(self, kind: str, *places: tuple[float, float]) -> None:
        self.time += 0.02
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
        event = {"type": f"touch{kind}", "touchPoints": points, "timestamp": self.time}
        self.session.send("Input.dispatchTouchEvent", event)


def test_fingers_on_a_phone(visit):
    someone = visit(**PHONE)
    someone.open(picture(*SIZE))
    fitted, touch = someone.zoom, Fingers(someone.page)
    with someone.moving():
        touch("Start", (150, 400), (220, 400))
        for spread in range(0, 80, 10):
            touch("Move", (150 - spread, 400), (220 + spread, 400))
        touch("End")
    assert someone.zoom == pytest.approx(fitted * 210 / 70, rel=0.05)
    assert np.array_equal(someone.canvas(), someone.expected("rough", SIZE))
    before = someone.view
    with someone.moving():
        touch("Start", (200, 400))
        touch("Move", (170, 400))
        touch("Move", (150, 400))
        touch("End")
    assert someone.view["left"] == before["left"] - 50
    zoom = someone.zoom
    with someone.moving():
        for _ in range(2):
            touch("Start", (180, 420))
            touch("End")
    assert someone.zoom == pytest.approx(2 * zoom, rel=0.01)


def test_two_fingers_that_only_touch_leave_it_as_it_is(visit):
    someone = visit(**PHONE)
    someone.open(picture(*SIZE))
    seen, touch = someone.canvas(), Fingers(someone.page)
    touch("Start", (150, 400), (220, 400))
    someone.page.wait_for_selector("#stage[data-sharp=false]")
    touch("End")
    someone.sharp()
    assert np.array_equal(someone.canvas(), seen)


def test_a_phone_has_room_for_everything(visit):
    someone = visit(**PHONE)
    someone.open(picture(*SIZE))
    assert someone.page.evaluate("document.documentElement.scrollWidth") <= 375
    for name in ("Zoom in", "This view", "Export…"):
        box = someone.page.get_by_role("button", name=name).bounding_box()
        assert min(box["width"], box["height"]) >= 40
        assert box["x"] + box["width"] <= 375


def test_a_double_click_goes_in_and_with_shift_out(visit):
    someone = visit()
    someone.open(picture(*SIZE))
    fitted = someone.zoom
    for factor in (2, 4):
        with someone.moving():
            someone.page.mouse.dblclick(450, 350)
        assert someone.zoom == pytest.approx(factor * fitted, rel=0.01)
    someone.page.keyboard.down("Shift")
    with someone.moving():
        someone.page.mouse.dblclick(450, 350)
    assert someone.zoom == pytest.approx(2 * fitted, rel=0.01)


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
