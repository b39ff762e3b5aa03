"""Screenshots of the page for the documentation: python tests/server/screenshots.py docs"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from browsing import CHROMIUM, FLAGS, Visitor
from playwright.sync_api import sync_playwright

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 375, "height": 812},
    "color_scheme": "light",
    "has_touch": True,
    "is_mobile": True,
}


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
    box = visitor.page.get_by_role("slider").bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    visitor.drag((box["x"] + box["width"] / 2, y), (x, y))
    visitor.page.mouse.move(x + 200, y)
    visitor.sharp()


def save_screenshot(visitor: Visitor, folder: Path, name: str) -> None:
    visitor.page.screenshot(path=folder / f"serve-{name}.png")


def desktop(visitor: Visitor, folder: Path) -> None:
    visitor.page.wait_for_load_state("networkidle")
    save_screenshot(visitor, folder, "welcome")
    open_example(visitor, "cat")
    zoom_in(visitor, 520, 400, 2)
    visitor.choose("divider")
    move_divider(visitor, 500)
    save_screenshot(visitor, folder, "divider")
    visitor.choose("lens")
    visitor.page.mouse.move(420, 330)
    visitor.sharp()
    save_screenshot(visitor, folder, "lens")


def phone(visitor: Visitor, folder: Path) -> None:
    open_example(visitor, "coffee")
    zoom_in(visitor, 190, 380, 3)
    visitor.choose("divider")
    save_screenshot(visitor, folder, "phone")


def main(folder: Path) -> None:
    command = [sys.executable, "-m", "srno", "serve", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as engine:
        assert server.stderr
        address = re.search(r"http://\S+", server.stderr.readline())
        assert address
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for settings, act in ((DESKTOP, desktop), (PHONE, phone)):
            act(Visitor(browser.new_context(**settings).new_page(), address[0].rstrip("/")), folder)
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
