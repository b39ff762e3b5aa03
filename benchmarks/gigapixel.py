"""Large pictures: time, resident set and bytes written against size on one machine, and the overhead of a cluster.

    python benchmarks/gigapixel.py                                # 16, 64 and 256 megapixels within 1 GB
    python benchmarks/gigapixel.py --megapixels 1000 4000 16000 --memory 2G --model default
    python benchmarks/gigapixel.py --megapixels 100 --workers 1 2 4

Every run is a process of its own. CPU seconds include workers and leave out what other programs on the machine do.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tifffile
import torch

from srno.checkpoints.build import create_model
from srno.checkpoints.native import Card, Checkpoint, write_checkpoint
from srno.config import EDSRConfig, SRNOConfig
from srno.imaging.picture import Samples

SMALL = SRNOConfig(encoder=EDSRConfig(channels=8, blocks=1), d_z=16, heads=2, iterations=1, projection_width=16)
"""A model with random weights, small enough for a slow machine."""
SOURCE_TILE = 256

CHILD = """
import re, sys
from pathlib import Path
from srno.cli import main
if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SystemExit as stop:
        if stop.code:
            raise
    peak = re.search(r"VmHWM:\\\\s+(\\\\d+) kB", Path("/proc/self/status").read_text())
    written = re.search(r"wchar: (\\\\d+)", Path("/proc/self/io").read_text())
    print("measured", 1024 * int(peak[1]), int(written[1]))
""".replace("\\\\", "\\")


def source_tiles(side: int) -> Iterator[Samples]:
    """Rings, waves and a product of both axes, tile by tile."""
    for top in range(0, side, SOURCE_TILE):
        for left in range(0, side, SOURCE_TILE):
            y, x = np.mgrid[top : top + SOURCE_TILE, left : left + SOURCE_TILE].astype(np.float32)
            ring = np.sin(((y - side / 2) ** 2 + (x - side / 2) ** 2) / 9000)
            values = np.stack([ring, np.sin(x * x / 40000) * np.cos(y / 37), np.sin(x * y / 50000)], axis=-1)
            yield ((values + 1) * 127.5).astype(np.uint8)


def write_source(path: Path, side: int) -> None:
    """Write a tiled picture of any size in little memory."""
    tifffile.imwrite(
        path,
        source_tiles(side),
        shape=(side, side, 3),
        dtype=np.uint8,
        tile=(SOURCE_TILE, SOURCE_TILE),
        photometric="rgb",
        bigtiff=True,
        metadata=None,
    )


def write_model(path: Path) -> str:
    """Write the small model as a checkpoint."""
    torch.manual_seed(0)
    model = create_model(SMALL)
    write_checkpoint(Checkpoint(config=SMALL, state=model.state_dict(), card=Card(name="small")), path)
    return str(path)


def measure(
    folder: Path, megapixels: int, options: argparse.Namespace, model: str, workers: int | None
) -> dict[str, object]:
    """Enlarge one picture in a process of its own."""
    side = round((megapixels * 1e6) ** 0.5 / options.scale)
    source, output = folder / f"{side}.tif", folder / "out.tif"
    if not source.exists():
        write_source(source, side)
    command = ["upscale", source, "-m", model, "-s", options.scale, "-o", output, "--overwrite", "--threads", 1]
    command += ["--memory", options.memory, "--compression", options.compression, "--precision", options.precision]
    command += ["--integral", options.integral, *([] if workers is None else ["--cluster", f"local:{workers}"])]
    script = folder / "child.py"
    script.write_text(CHILD)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *map(str, [script, *command])], capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(r"measured (\d+) (\d+)", done.stdout)
    if found is None:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    pixels = (side * options.scale) ** 2
    return {
        "megapixels": round(pixels / 1e6, 1),
        "workers": workers,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "cpu_microseconds_per_pixel": round(cpu / pixels * 1e6, 3),
        "peak_mb": round(int(found[1]) / 2**20),
        "written_mb": round(int(found[2]) / 2**20),
        "output_mb": round(output.stat().st_size / 2**20),
    }


def main() -> None:
    """Print one JSON object per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megapixels", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--model", help="a shipped model or a checkpoint; a small one with random weights unless given")
    parser.add_argument("--integral", default="auto")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--compression", default="jpeg")
    parser.add_argument("--folder", help="where pictures are written; a temporary folder unless given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        model = options.model or write_model(folder / "small.safetensors")
        for megapixels in options.megapixels:
            for workers in (None, *options.workers):
                print(json.dumps(measure(folder, megapixels, options, model, workers)), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
