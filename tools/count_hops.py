"""Count what the journeys of docs/architecture.md pass through before their first convolution.

    python tools/count_hops.py {upscale,train,tile} [-v]

Prints in how many source files of the package a function is called, and how many of its frames are on the stack of the
thread that computes the convolution; with -v also both lists. What runs while a module is imported is not counted.
`tile` needs srno[serve] and httpx.
"""

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import srno
from srno.checkpoints.catalogue import find
from srno.cli import main

ROOT = str(Path(srno.__file__).parent) + "/"
EXAMPLES = Path(ROOT, "examples")


class Hops:
    """A profile function that records the files entered, and the stack at the first convolution."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.stack: list[str] = []

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        if self.stack:
            sys.setprofile(None)
        elif event == "c_call" and getattr(called, "__name__", "") == "conv2d":
            self.stack = [_name(caller) for caller in _callers(frame) if _is_ours(caller)][::-1]
        elif event == "call" and _is_ours(frame):
            path = frame.f_code.co_filename.removeprefix(ROOT)
            if path not in self.files and not _importing(frame):
                self.files[path] = None

    def record(self, work: Callable[[], object]) -> None:
        """Run a function, with the threads that it starts."""
        threading.setprofile(self)
        sys.setprofile(self)
        with suppress(SystemExit):  # a command ends with it
            work()
        sys.setprofile(None)
        threading.setprofile(None)
        if not self.stack:
            raise SystemExit("no convolution was computed")


def upscale(folder: Path, hops: Hops) -> None:
    """Enlarge a JPEG."""
    from PIL import Image

    Image.open(EXAMPLES / "cat.png").save(folder / "photo.jpg")
    hops.record(lambda: main(["upscale", str(folder / "photo.jpg")]))


def train(folder: Path, hops: Hops) -> None:
    """Train for one step."""
    flags = ["--steps", "1", "--stages", "16x2x64", "--hold-out", "0"]
    hops.record(lambda: main(["train", "--data", str(EXAMPLES), "--out", str(folder / "run"), *flags]))


def tile(_: Path, hops: Hops) -> None:
    """Ask the server for a tile."""
    from starlette.testclient import TestClient

    from srno.server import workers
    from srno.server.app import make_app
    from srno.server.guard import allowed_hosts
    from srno.server.studio import Studio

    workers.IDLE_SECONDS = 3600  # what an idle thread does depends on the machine's load

    def ask() -> None:
        studio = Studio({"light": find("light")}, memory=1 << 30, threads=1)
        client = TestClient(make_app(studio, allowed_hosts("127.0.0.1")), base_url="http://127.0.0.1:7766")
        sent = client.post("/api/images", files={"file": ("cat.png", (EXAMPLES / "cat.png").read_bytes())}).json()
        where = {"source": "light", "level": "1200,1200", "rect": "0,0,64,64"}
        client.get(f"/api/images/{sent['id']}/tile", params=where).raise_for_status()
        studio.close()

    hops.record(ask)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(ROOT)


def _importing(frame: FrameType) -> bool:
    return any(_is_ours(caller) and caller.f_code.co_name == "<module>" for caller in _callers(frame))


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those below it on the stack."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _name(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename.removeprefix(ROOT)}: {frame.f_code.co_qualname}"


def run() -> None:
    journeys = {journey.__name__: journey for journey in (upscale, train, tile)}
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("journey", choices=journeys)
    parser.add_argument("-v", "--verbose", action="store_true", help="print the files and the stack")
    given = parser.parse_args()
    hops = Hops()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # the same files whatever is cached
        journeys[given.journey](Path(folder), hops)
    print(f"{given.journey}: {len(hops.files)} files, {len(hops.stack)} frames")
    if given.verbose:
        print(*hops.files, "", *hops.stack, sep="\n")


if __name__ == "__main__":
    run()
