"""Large pictures: time, resident set and bytes written against size on one machine, and the overhead of a cluster.

    python benchmarks/gigapixel.py                                # 16, 64 and 256 megapixels within 1 GB
    python benchmarks/gigapixel.py --megapixels 64 256 1024 4096 --memory 2G --model least --pyramid
    python benchmarks/gigapixel.py --megapixels 36 100 --workers 1 2 4 --repeats 2

Every run is a process of its own; of several repeats, which are interleaved, that with the fewest CPU seconds counts.
CPU seconds include workers and leave out what other programs on the machine do. The resident set is that of the command
and all its workers together, looked at five times a second; pages that they share count for each.
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
from contextlib import suppress
from pathlib import Path

import numpy as np
import tifffile
import torch

from srno.checkpoints.build import create_model
from srno.checkpoints.native import Card, Checkpoint, write_checkpoint
from srno.config import EDSRConfig, SRNOConfig
from srno.imaging.picture import Samples

MODELS = {
    "small": SRNOConfig(encoder=EDSRConfig(channels=8, blocks=1), d_z=16, heads=2, iterations=1, projection_width=16),
    "least": SRNOConfig(
        encoder=EDSRConfig(channels=4, blocks=1), lifting="nearest", d_z=4, heads=1, iterations=1, projection_width=4
    ),
}
"""Models with random weights: what is around them costs more than they do."""
SOURCE_TILE = 256
SECONDS_BETWEEN_LOOKS = 0.2


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


def write_model(name: str, folder: Path) -> str:
    """Write a model of ours as a checkpoint; another name is given to the command as it is."""
    if name not in MODELS:
        return name
    torch.manual_seed(0)
    model, path = create_model(MODELS[name]), folder / f"{name}.safetensors"
    write_checkpoint(Checkpoint(config=MODELS[name], state=model.state_dict(), card=Card(name=name)), path)
    return str(path)


def with_descendants(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def number_in(path: str, name: str) -> int:
    """The number after a name in a file of /proc; 0 if the process has ended."""
    with suppress(OSError):
        found = re.search(rf"^{name}:\s+(\d+)", Path(path).read_text(), re.MULTILINE)
        return int(found[1]) if found else 0
    return 0


def watch(process: "subprocess.Popen[bytes]") -> tuple[int, int]:
    """Wait for a process; return the peak of the resident set with its workers, and the bytes that all have written."""
    peak, written = 0, dict[int, int]()
    while process.poll() is None:
        pids = with_descendants(process.pid)
        peak = max(peak, 1024 * sum(number_in(f"/proc/{pid}/status", "VmRSS") for pid in pids))
        for pid in pids:
            written[pid] = max(written.get(pid, 0), number_in(f"/proc/{pid}/io", "wchar"))
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return peak, sum(written.values())


def measure(
    folder: Path, megapixels: int, options: argparse.Namespace, model: str, workers: int | None
) -> dict[str, float | None]:
    """Enlarge one picture in a process of its own."""
    side = round((megapixels * 1e6) ** 0.5 / options.scale)
    source, output = folder / f"{side}.tif", folder / "out.tif"
    if not source.exists():
        write_source(source, side)
    command = ["upscale", source, "-m", model, "-s", options.scale, "-o", output, "--overwrite", "--threads", 1]
    command += ["--memory", options.memory, "--compression", options.compression, "--precision", options.precision]
    command += ["--integral", options.integral, *([] if workers is None else ["--cluster", f"local:{workers}"])]
    command += ["--pyramid"] if options.pyramid else []
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "srno", *map(str, command)])
    peak, written = watch(process)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        sys.exit(process.returncode)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    pixels = (side * options.scale) ** 2
    return {
        "megapixels": round(pixels / 1e6, 1),
        "workers": workers,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "cpu_microseconds_per_pixel": round(cpu / pixels * 1e6, 3),
        "peak_mb": round(peak / 2**20),
        "written_mb": round(written / 2**20),
        "output_mb": round(output.stat().st_size / 2**20),
    }


def main() -> None:
    """Print one JSON object per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megapixels", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--model", default="small", help="small, least, a shipped model or a checkpoint")
    parser.add_argument("--integral", default="auto")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--compression", default="jpeg")
    parser.add_argument("--pyramid", action="store_true")
    parser.add_argument("--folder", help="where pictures are written; a temporary folder unless given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        model = write_model(options.model, folder)
        for megapixels in options.megapixels:
            rows = [
                [measure(folder, megapixels, options, model, workers) for workers in (None, *options.workers)]
                for _ in range(options.repeats)
            ]
            for same in zip(*rows, strict=True):
                print(json.dumps(min(same, key=lambda row: row["cpu_seconds"] or 0)), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
