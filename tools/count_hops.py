"""Count what `srno upscale PICTURE` passes through before its first convolution, for docs/architecture.md.

    python tools/count_hops.py [PICTURE] [-v]

Prints in how many source files of the package a function is called, and how many of its frames are on the stack at
the convolution; with -v also both lists. What runs while a module is imported is not counted.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import FrameType
from typing import Any

import srno
from srno.cli import main

ROOT = str(Path(srno.__file__).parent) + "/"


class FirstConvolution(BaseException):
    """Stops the command."""


class Hops:
    """A profile function that records the files entered, and the stack at the first convolution."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.stack: list[str] = []

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and getattr(called, "__name__", "") == "conv2d":
            sys.setprofile(None)
            self.stack = [_name(caller) for caller in _callers(frame) if _is_ours(caller)][::-1]
            raise FirstConvolution
        path = frame.f_code.co_filename.removeprefix(ROOT)
        if event == "call" and _is_ours(frame) and path not in self.files and not _importing(frame):
            self.files[path] = None


def count(picture: Path) -> Hops:
    """Enlarge a picture until the first convolution."""
    hops = Hops()
    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(hops)
        try:
            main(["upscale", str(picture), "-o", str(Path(folder, "out.png"))])
        except FirstConvolution:
            return hops
    raise SystemExit(f"{picture}: no convolution was computed")


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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("picture", nargs="?", default=str(files("srno") / "examples" / "cat.png"), type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="print the files and the stack")
    given = parser.parse_args()
    hops = count(given.picture)
    print(f"{len(hops.files)} files, {len(hops.stack)} frames")
    if given.verbose:
        print(*hops.files, "", *hops.stack, sep="\n")


if __name__ == "__main__":
    run()
