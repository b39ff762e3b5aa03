"""Drives the page in a browser, for the tests."""

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
TIMEOUT_MS = 120_000  # long, since the machine may be busy

SIZE = (64, 48)
WINDOW = {"width": 900, "height": 640}
PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 700}, "has_touch": True, "is_mobile": True}
SHARP_STAGE = "#stage[data-sharp=true][data-settled=true][data-drawn=true]"


def near(seen: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Equal up to one level: Pillow places bicubic pixels in single precision, which depends on the tiles."""
    return bool(np.abs(seen.astype(int) - expected).max() <= 1)


class Visitor:
    """Uses one page and records its errors and requests."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note)
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address)
        page.wait_for_selector("body[data-ready]")  # the page handles events now

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} {message.location.get('url', '')}")

    def open(self, data: bytes, name: str = "hills.png") -> None:
        """Choose a file and wait until the window is sharp."""
        self.page.set_input_files("#file", {"name": name, "mimeType": "image/png", "buffer": data})
        self.page.wait_for_selector("body:not([data-opening])")  # until then the previous picture is shown
        self.sharp()

    def sharp(self) -> None:
        """Wait until all tiles of the window are drawn and faded in, with the best kernel integral."""
        self.page.wait_for_selector(SHARP_STAGE)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Run a block that moves the picture, then wait until the window is sharp at another position."""
        before = self.page.get_attribute("#stage", "data-view")
        yield
        self.page.wait_for_selector(f"{SHARP_STAGE}:not([data-view='{before}'])")

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + TIMEOUT_MS / 1000
        while not condition():
            assert time.monotonic() < end, "the condition does not hold in time"
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
    def asked(self) -> list[str]:
        """The tiles that the page has requested, in order."""
        return [url for url in self.requests if "/tile?" in url]

    @property
    def view(self) -> dict[str, int]:
        """Width of the level, left and top of the picture, size of the window."""
        numbers = self.page.get_attribute("#stage", "data-view").split(",")
        return dict(zip(("level", "left", "top", "width", "height"), map(int, numbers), strict=True))

    @property
    def zoom(self) -> float:
        return float(self.page.text_content("#zoom").removeprefix("×"))

    def canvas(self) -> NDArray[Any]:
        """The pixels of the canvas."""
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
