"""A person in front of the page, for the tests."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PATIENCE = 120_000  # ms, on a machine that may have other things to do


def near(seen: NDArray[Any], expected: NDArray[Any]) -> bool:
    """The same, but for Pillow's rounding, which depends on how bicubic pixels are cut into tiles."""
    return bool(np.abs(seen.astype(int) - expected).max() <= 2)


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

    def open(self, data: bytes, name: str = "hills.png") -> None:
        """Choose a file, and wait until the window is sharp."""
        self.page.set_input_files("#file", {"name": name, "mimeType": "image/png", "buffer": data})
        self.sharp()

    def sharp(self) -> None:
        """Wait for the window's own pixels, all of them and faded in."""
        self.page.wait_for_selector("#stage[data-sharp=true]")
        self.page.wait_for_timeout(250)
        self.page.wait_for_selector("#stage[data-sharp=true]")

    def wheel(self, turn: int, x: float, y: float) -> None:
        self.page.mouse.move(x, y)
        self.page.mouse.wheel(0, turn)
        self.page.wait_for_timeout(50)
        self.sharp()

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
