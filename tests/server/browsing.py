"""A person in front of the page, for the tests."""

import base64
import io
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PATIENCE = 120_000  # ms, on a machine that may have other things to do

SIZE = (64, 48)
WINDOW = {"width": 900, "height": 640}
PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 700}, "has_touch": True, "is_mobile": True}
STILL = "#stage[data-sharp=true][data-drawn=true]"


def near(seen: NDArray[Any], expected: NDArray[Any]) -> bool:
    """The same, but for the seven digits to which Pillow places bicubic pixels, which depend on the tiles."""
    return bool(np.abs(seen.astype(int) - expected).max() <= 1)


class Visitor:
    """Looks at one page, and notes what goes wrong on it."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address)
        page.locator("#limits", has_text="MB").wait_for()  # the page has begun to listen

    def open(self, data: bytes, name: str = "hills.png") -> None:
        """Choose a file, and wait until the window is sharp."""
        self.page.set_input_files("#file", {"name": name, "mimeType": "image/png", "buffer": data})
        self.sharp()

    def sharp(self) -> None:
        """Wait for the window's own pixels, all of them and faded in."""
        self.page.wait_for_selector(STILL)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Something that moves the picture; waits until the window is sharp at another place."""
        before = self.page.get_attribute("#stage", "data-view")
        yield
        self.page.wait_for_selector(f"{STILL}:not([data-view='{before}'])")

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to come true."""
        end = time.monotonic() + PATIENCE / 1000
        while not condition():
            assert time.monotonic() < end, "in vain"
            self.page.wait_for_timeout(20)

    def wheel(self, turn: int, x: float, y: float) -> None:
        with self.moving():
            self.page.mouse.move(x, y)
            self.page.mouse.wheel(0, turn)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move(*end, steps=4)
        self.page.mouse.up()

    def choose(self, mode: str) -> None:
        self.page.locator(f"#modes label:has(input[value={mode}])").click()
        self.sharp()

    @property
    def view(self) -> dict[str, int]:
        """What the window shows: level's width, the picture's left and top, the window's size."""
        numbers = self.page.get_attribute("#stage", "data-view").split(",")
        return dict(zip(("level", "left", "top", "width", "height"), map(int, numbers), strict=True))

    @property
    def zoom(self) -> float:
        return float(self.page.text_content("#zoom").removeprefix("×"))

    def canvas(self) -> NDArray[Any]:
        """The pixels on the screen."""
        data = self.page.evaluate("document.getElementById('canvas').toDataURL('image/png')")
        image = Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2])))
        return np.asarray(image.convert("RGB"))

    def expected(self, source: str, size: tuple[int, int]) -> NDArray[Any]:
        """The same window as the server computes it in one piece, black around the picture."""
        view, picture_id = self.view, self._picture()
        level = view["level"], max(1, int(size[1] * view["level"] / size[0] + 0.5))
        left, top = max(0, -view["left"]), max(0, -view["top"])
        right, bottom = min(level[0], view["width"] - view["left"]), min(level[1], view["height"] - view["top"])
        query = f"source={source}&level={level[0]},{level[1]}&rect={left},{top},{right - left},{bottom - top}"
        answer = self.page.request.get(f"{self.address}/api/images/{picture_id}/tile?{query}")
        assert answer.ok, answer.text()
        window = np.zeros((view["height"], view["width"], 3), np.uint8)
        y, x = view["top"] + top, view["left"] + left
        window[y : y + bottom - top, x : x + right - left] = np.asarray(Image.open(io.BytesIO(answer.body())))
        return window

    def _picture(self) -> str:
        return next(url for url in reversed(self.requests) if "/tile?" in url).split("/")[-2]
