"""The page in a real browser: ways to open a picture, keyboard, touch, screen readers, settings."""

import time
from typing import Any

import numpy as np
import pytest
from browsing import PHONE, SIZE
from serving import picture

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("name", "data", "words", "uploaded"),
    [
        ("notes.png", b"not a picture at all", "not a picture in a known format", True),
        ("cut.png", picture(90, 90)[:9000], "damaged or cut short", True),
        ("nothing.png", b"", "is empty", False),
        ("long.png", b"\0" * 200_001, "the limit is 0.2 MB", False),
        ("wide.png", picture(400, 300, "L"), "400 × 300", False),
    ],
    ids=["not a picture", "truncated", "empty", "too many bytes", "too many pixels"],
)
def test_a_file_that_cannot_be_opened_gives_an_alert(visit, name, data, words, uploaded):
    visitor = visit()
    visitor.page.set_input_files("#file", {"name": name, "mimeType": "image/png", "buffer": data})
    alert = visitor.page.get_by_role("alert").filter(has_text=words)
    alert.wait_for()
    assert name in alert.text_content()
    assert any(url.endswith("/api/images") for url in visitor.requests) == uploaded
    if uploaded:
        visitor.errors = [error for error in visitor.errors if "400" not in error]
    assert visitor.page.get_by_role("button", name="Choose pictures").is_visible()


def test_a_click_opens_an_example(visit):
    visitor = visit()
    visitor.page.get_by_role("button", name="soft hills").click()
    visitor.sharp()
    assert visitor.page.text_content("#name") == "soft-hills.png"


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_pictures_can_be_dropped_and_pasted(visit, way):
    visitor = visit()
    script = """([way, bytes]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], "given.png", { type: "image/png" }));
        const event = way === "drop"
            ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
            : new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
        document.body.dispatchEvent(event);
    }"""
    visitor.page.evaluate(script, [way, list(picture(*SIZE))])
    visitor.sharp()
    assert visitor.page.text_content("#name") == "given.png"


def test_the_keyboard_alone_operates_the_page(visit):
    visitor = visit()
    page = visitor.page
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "choose"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the example
    visitor.sharp()
    assert page.evaluate("document.activeElement.id") == "stage"
    fitted = visitor.zoom
    with visitor.moving():
        for _ in range(4):
            page.keyboard.press("+")
    assert visitor.zoom == pytest.approx(4 * fitted, rel=0.01)
    before = visitor.view
    with visitor.moving():
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
    assert visitor.view["left"] < before["left"]
    assert visitor.view["top"] < before["top"]
    with visitor.moving():
        page.keyboard.press("-")
        page.keyboard.press("0")
    assert visitor.zoom == fitted
    page.get_by_role("radio", name="One").focus()
    page.keyboard.press("ArrowRight")
    visitor.sharp()
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


def test_screen_readers_get_names_and_announcements(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    live = visitor.page.locator("#live")
    fitted = visitor.zoom
    assert f"Zoom {fitted:g}, centre at 32, 24" in live.text_content()
    stage = visitor.page.get_by_role("application", name="hills.png")
    assert "Arrow keys move" in visitor.page.text_content(f"#{stage.get_attribute('aria-describedby')}")
    for role, name in [("button", "Zoom in"), ("button", "Zoom out"), ("button", "Show the whole picture")]:
        assert visitor.page.get_by_role(role, name=name).is_visible()
    with visitor.moving():
        visitor.page.get_by_role("button", name="Zoom in").click()
    assert visitor.zoom == pytest.approx(2 * fitted, rel=0.01)
    assert f"Zoom {visitor.zoom:g}" in live.text_content()


class Fingers:
    """Sends touch events with fixed time steps, independent of the speed of the machine."""

    def __init__(self, page: Any) -> None:
        self.session, self.time = page.context.new_cdp_session(page), time.time()

    def __call__(self, kind: str, *places: tuple[float, float]) -> None:
        self.time += 0.02
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
        event = {"type": f"touch{kind}", "touchPoints": points, "timestamp": self.time}
        self.session.send("Input.dispatchTouchEvent", event)


def test_pinch_drag_and_double_tap_on_a_phone(visit):
    visitor = visit(**PHONE)
    visitor.open(picture(*SIZE))
    fitted, touch = visitor.zoom, Fingers(visitor.page)
    with visitor.moving():
        touch("Start", (150, 400), (220, 400))
        for spread in range(0, 80, 10):
            touch("Move", (150 - spread, 400), (220 + spread, 400))
        touch("End")
    assert visitor.zoom == pytest.approx(fitted * 210 / 70, rel=0.05)
    assert np.array_equal(visitor.canvas(), visitor.expected("rough", SIZE))
    before = visitor.view
    with visitor.moving():
        touch("Start", (200, 400))
        touch("Move", (170, 400))
        touch("Move", (150, 400))
        touch("End")
    assert visitor.view["left"] == before["left"] - 50
    zoom = visitor.zoom
    with visitor.moving():
        for _ in range(2):
            touch("Start", (180, 420))
            touch("End")
    assert visitor.zoom == pytest.approx(2 * zoom, rel=0.01)


def test_two_fingers_that_do_not_move_leave_the_view_unchanged(visit):
    visitor = visit(**PHONE)
    visitor.open(picture(*SIZE))
    seen, touch = visitor.canvas(), Fingers(visitor.page)
    touch("Start", (150, 400), (220, 400))
    visitor.page.wait_for_selector("#stage[data-sharp=false]")
    touch("End")
    visitor.sharp()
    assert np.array_equal(visitor.canvas(), seen)


def test_all_buttons_fit_on_a_phone(visit):
    visitor = visit(**PHONE)
    visitor.open(picture(*SIZE))
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 375
    for name in ("Zoom in", "This view", "Export…"):
        box = visitor.page.get_by_role("button", name=name).bounding_box()
        assert min(box["width"], box["height"]) >= 40
        assert box["x"] + box["width"] <= 375


def test_a_double_click_zooms_in_and_with_shift_out(visit):
    visitor = visit()
    visitor.open(picture(*SIZE))
    fitted = visitor.zoom
    for factor in (2, 4):
        with visitor.moving():
            visitor.page.mouse.dblclick(450, 350)
        assert visitor.zoom == pytest.approx(factor * fitted, rel=0.01)
    visitor.page.keyboard.down("Shift")
    with visitor.moving():
        visitor.page.mouse.dblclick(450, 350)
    assert visitor.zoom == pytest.approx(2 * fitted, rel=0.01)


def test_reduced_motion_disables_the_zoom_animation(visit):
    visitor = visit(reduced_motion="reduce")
    visitor.open(picture(*SIZE))
    fitted = visitor.zoom
    visitor.page.keyboard.press("+")
    assert visitor.zoom == pytest.approx(fitted * 2**0.5, rel=0.01)  # at once


def test_dark_and_light_follow_the_system(visit):
    grounds = [
        visit(color_scheme=scheme).page.evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("dark", "light")
    ]
    brightness = [sum(int(number) for number in ground.strip("rgb()").split(",")) for ground in grounds]
    assert brightness[0] < 100 < 600 < brightness[1]


def test_the_page_is_small_and_contacts_no_other_host(visit, address):
    visitor = visit()
    visitor.page.wait_for_load_state("networkidle")
    assert all(url.startswith(address) for url in visitor.requests)
    files = [url for url in visitor.requests if "/api/" not in url]
    sizes = [len(visitor.page.request.get(url).body()) for url in files]
    assert len(files) >= 10
    assert sum(sizes) < 150_000


@pytest.mark.parametrize("name", ["export", "help"])
def test_a_dialog_begins_at_its_top_and_has_its_buttons_in_a_low_window(visit, name):
    visitor = visit(viewport={"width": 812, "height": 375})
    visitor.open(picture(*SIZE))
    visitor.page.keyboard.press({"export": "e", "help": "?"}[name])
    dialog = visitor.page.locator(f"dialog#{name}")
    title, buttons = (dialog.locator(part).bounding_box() for part in ("h2", ".buttons"))
    assert 0 <= title["y"] < 40
    assert buttons["y"] + buttons["height"] <= 375
