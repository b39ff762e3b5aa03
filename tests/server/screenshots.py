"""Screenshots of the page for the documentation: python tests/server/screenshots.py docs

Further windows, to look at: python tests/server/screenshots.py FOLDER wide landscape export
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from browsing import CHROMIUM, FLAGS, Visitor
from playwright.sync_api import sync_playwright

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"}
WIDE: dict[str, Any] = {"viewport": {"width": 2560, "height": 1440}, "color_scheme": "light"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 375, "height": 812},
    "color_scheme": "light",
    "has_touch": True,
    "is_mobile": True,
}
LANDSCAPE: dict[str, Any] = {**PHONE, "viewport": {"width": 812, "height": 375}, "color_scheme": "dark"}


def zoom_in(visitor: Visitor, x: float, y: float, turns: int) -> None:
    """Zoom in around a point and wait until the window is sharp."""
    visitor.page.mouse.move(x, y)
    with visitor.moving():
        for _ in range(turns):
            visitor.page.mouse.wheel(0, -200)


def open_example(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("button", name=name).click()
    visitor.sharp()


def move_divider(visitor: Visitor, x: float) -> None:
    """Drag the divider to `x`."""
    box = visitor.page.locator("#divider").bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    visitor.drag((box["x"] + box["width"] / 2, y), (x, y))
    visitor.page.mouse.move(x + 200, y)
    visitor.sharp()


def save_screenshot(visitor: Visitor, folder: Path, name: str) -> None:
    visitor.page.screenshot(path=folder / f"serve-{name}.png")


def welcome(visitor: Visitor) -> None:
    visitor.page.wait_for_load_state("networkidle")


def divider(visitor: Visitor) -> None:
    open_example(visitor, "cat")
    zoom_in(visitor, 520, 400, 2)
    visitor.choose("divider")
    move_divider(visitor, 500)


def lens(visitor: Visitor) -> None:
    open_example(visitor, "cat")
    zoom_in(visitor, 520, 400, 2)
    visitor.choose("lens")
    visitor.page.mouse.move(420, 330)
    visitor.sharp()


def inside(visitor: Visitor) -> None:
    open_example(visitor, "cat")
    visitor.page.keyboard.press("i")
    visitor.sharp()
    zoom_in(visitor, 430, 380, 3)
    visitor.page.locator("#maps section").nth(5).wait_for()
    visitor.page.mouse.move(420, 330)


def export(visitor: Visitor) -> None:
    open_example(visitor, "rocket")
    visitor.page.keyboard.press("e")
    visitor.page.locator("#outcome").filter(has_text="About").wait_for()


def wide(visitor: Visitor) -> None:
    open_example(visitor, "coffee")
    visitor.choose("side")


def phone(visitor: Visitor) -> None:
    open_example(visitor, "coffee")
    zoom_in(visitor, 190, 230, 3)
    visitor.choose("divider")


PICTURES: dict[str, tuple[dict[str, Any], Callable[[Visitor], None]]] = {
    "welcome": (DESKTOP, welcome),
    "divider": (DESKTOP, divider),
    "lens": (DESKTOP, lens),
    "inside": (DESKTOP, inside),
    "phone": (PHONE, phone),
    "export": (DESKTOP, export),
    "wide": (WIDE, wide),
    "landscape": (LANDSCAPE, phone),
}
IN_THE_DOCS = ("welcome", "divider", "lens", "inside", "phone")


@contextmanager
def serving() -> Iterator[str]:
    """Run the server; return its address."""
    command = [sys.executable, "-m", "srno", "serve", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        address = re.search(r"http://\S+", server.stderr.readline())
        try:
            assert address
            yield address[0].rstrip("/")
        finally:
            server.terminate()


def main(folder: Path, names: list[str]) -> None:
    with serving() as address, sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name in names:
            settings, act = PICTURES[name]
            visitor = Visitor(browser.new_context(**settings).new_page(), address)
            act(visitor)
            save_screenshot(visitor, folder, name)
            visitor.page.context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(IN_THE_DOCS))
