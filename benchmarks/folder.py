"""A folder of small pictures: the time of `srno upscale` against the sum of its bare renders.

    python benchmarks/folder.py
    python benchmarks/folder.py --count 50 --size 640x480 --format jpg

A bare render takes a tensor and gives a tensor. The rest is decoding, encoding, file names and reports, which overlap
with computing where there are cores for it. Both are measured in turns, and the least of each counts. The model is
loaded before, since the start does not depend on the number of pictures; `--start` measures that start instead, from
`import srno` to the first picture.
"""

import argparse
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from srno.machine import keep_freed_memory
from srno.upscaling.batch import run
from srno.upscaling.batch_view import BatchView
from srno.upscaling.jobs import plan_batch
from srno.upscaling.naming import parse_output
from srno.upscaling.sizes import make_request
from srno.upscaling.sources import find_sources
from srno.upscaling.steps import BatchSettings
from srno.upscaling.upscaler import Upscaler


def write_pictures(folder: Path, count: int, size: tuple[int, int], suffix: str) -> None:
    """Smooth random pictures, which compress about as photographs do."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        small = rng.integers(256, size=(size[1] // 4, size[0] // 4, 3), dtype=np.uint8)
        Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).save(folder / f"{number:04}.{suffix}")


def seconds(work: Callable[[], object]) -> float:
    """Wall clock of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


LAPS = """
import time
laps = [time.perf_counter()]
def lap(): laps.append(time.perf_counter())
import srno; lap()
import torch; lap()
import srno.upscaling.api; lap()
model = srno.load("default"); lap()
srno.upscale({picture!r}, scale=2, model=model); lap()
print(*(after - before for before, after in zip(laps, laps[1:])))
"""
PARTS = ("import srno", "import torch", "modules of srno", "load the model", "first picture")


def measure_start(picture: Path, repeats: int) -> None:
    """Print the time of the whole command for one small picture, and of the same in Python, part by part."""
    command = [sys.executable, "-m", "srno", "upscale", str(picture), "-s", "2", "--overwrite"]
    python = [sys.executable, "-c", LAPS.format(picture=str(picture))]
    whole: list[float] = []
    parts: list[list[float]] = []
    for _ in range(repeats):
        whole.append(seconds(partial(subprocess.run, command, check=True, capture_output=True)))
        printed = subprocess.run(python, check=True, capture_output=True, text=True).stdout
        parts.append([float(part) for part in printed.split()])
    best = min(parts, key=sum)
    print(f"srno upscale of one small picture: {min(whole):.2f} s, from the shell and back")
    print(f"in Python {sum(best):.2f} s: " + ", ".join(f"{n} {t:.2f}" for n, t in zip(PARTS, best, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--size", default="160x120")
    parser.add_argument("--format", default="png")
    parser.add_argument("--model", default="default")
    parser.add_argument("--scale", default="2")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--start", action="store_true")
    arguments = parser.parse_args()
    width, height = (int(side) for side in arguments.size.split("x"))
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as temporary:
        source, result = Path(temporary) / "source", Path(temporary) / "result"
        write_pictures(source, arguments.count, (width, height), arguments.format)
        if arguments.start:
            measure_start(next(source.iterdir()), arguments.repeats)
            return
        request, upscaler = make_request(arguments.scale, None, None, None, None), Upscaler(model=arguments.model)
        target = request.target((width, height)).whole
        images = [torch.rand(3, height, width) * 2 - 1 for _ in range(arguments.count)]
        settings = BatchSettings(request=request, upscaler=upscaler)

        def bare() -> None:
            for image in images:
                upscaler(image, (target[1], target[0]))

        def folder() -> None:
            naming = parse_output(f"{result}/", None, None, [str(source)])
            sources = find_sources([str(source)], recursive=False, excluded=None)
            plan = plan_batch(sources, None, request, naming, "overwrite")
            with redirect_stderr(io.StringIO()), BatchView(plan, bars=False, verbose=False) as view:
                outcomes = list(run(plan, settings, view))
            assert all(outcome.status == "written" for outcome in outcomes)

        upscaler(images[0], (target[1], target[0]))
        turns = [(seconds(bare), seconds(folder)) for _ in range(arguments.repeats)]
    least = [min(column) for column in zip(*turns, strict=True)]
    print(f"{arguments.count} pictures of {width}×{height} at ×{arguments.scale}, {torch.get_num_threads()} threads:")
    print(f"bare renders {least[0]:.2f} s, the folder {least[1]:.2f} s: {least[1] / least[0]:.2f} times")


if __name__ == "__main__":
    main()
