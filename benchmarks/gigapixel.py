"""Large pictures: time, resident set and bytes written against size on one machine, and the overhead of a cluster.

    python benchmarks/gigapixel.py                                # 16, 64 and 256 megapixels within 1 GB
    python benchmarks/gigapixel.py --megapixels 64 256 1024 4096 --memory 2G --model least --pyramid
    python benchmarks/gigapixel.py --megapixels 100 --workers 1 2 4 --running --repeats 2 --model light

Every run is a process of its own; of several repeats, which are interleaved, that with the fewest CPU seconds counts.
CPU seconds include workers and leave out what other programs on the machine do. With `--running` every number of
workers is measured twice: started by the command (`local:N`), and started before it with Dask's own commands, in which
case the CPU seconds of scheduler and workers count from the start of the command. The resident set is that of the
command and all workers together, looked at five times a second; pages that they share count for each.
"""

import argparse
import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
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
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "2s",
}
"""What docs/gigapixel.md advises for workers."""
SECONDS_BETWEEN_LOOKS = 0.2
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of Linux."""


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


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of processes that run."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def watch(process: "subprocess.Popen[bytes]", others: list[int]) -> tuple[int, int]:
    """Wait for a process; return the peak of the resident set with its workers, and the bytes that all have written."""
    peak, written = 0, dict[int, int]()
    before = {pid: number_in(f"/proc/{pid}/io", "wchar") for pid in others}
    while process.poll() is None:
        pids = [*with_descendants(process.pid), *others]
        peak = max(peak, 1024 * sum(number_in(f"/proc/{pid}/status", "VmRSS") for pid in pids))
        for pid in pids:
            written[pid] = max(written.get(pid, 0), number_in(f"/proc/{pid}/io", "wchar") - before.get(pid, 0))
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return peak, sum(written.values())


def adopt_orphans() -> None:
    """Become the parent of processes whose parent ends: the command does not wait for the one that forks workers."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)


def wait_for_orphans() -> None:
    """Wait until no child is left, so that the CPU seconds of all count."""
    with suppress(ChildProcessError):
        while True:
            os.wait()


@dataclass(frozen=True)
class Case:
    """How a picture is made: in one process, or by so many workers."""

    workers: int | None = None
    running: bool = False
    """Whether they were started before."""


@contextmanager
def running_cluster(folder: Path, workers: int) -> Generator[tuple[str, list[int]]]:
    """Start a scheduler and workers as the documentation says; yield the address and the processes."""
    from distributed import Client

    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    dask = [sys.executable, "-m", "dask"]
    of_scheduler = ["scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    of_workers = ["worker", "--scheduler-file", str(file), "--nworkers", str(workers), "--nthreads", "1"]
    environment = {**os.environ, **QUIET}
    with subprocess.Popen([*dask, *of_scheduler], env=environment, stderr=subprocess.DEVNULL) as scheduler:
        try:
            with subprocess.Popen([*dask, *of_workers], env=environment, stderr=subprocess.DEVNULL) as nannies:
                try:
                    with Client(scheduler_file=str(file)) as client:
                        client.wait_for_workers(workers)
                    yield (
                        json.loads(file.read_text())["address"],
                        [*with_descendants(scheduler.pid), *with_descendants(nannies.pid)],
                    )
                finally:
                    nannies.terminate()
        finally:
            scheduler.terminate()


def upscale(source: Path, output: Path, model: str, options: argparse.Namespace, address: str | None) -> list[str]:
    """The command."""
    command = ["upscale", source, "-m", model, "-s", options.scale, "-o", output, "--overwrite", "--threads", 1]
    command += ["--memory", options.memory, "--compression", options.compression, "--precision", options.precision]
    command += ["--integral", options.integral, *([] if address is None else ["--cluster", address])]
    command += ["--pyramid"] if options.pyramid else []
    return [sys.executable, "-m", "srno", *map(str, command)]


def measure(
    folder: Path, megapixels: int, options: argparse.Namespace, model: str, case: Case
) -> dict[str, float | str | None]:
    """Enlarge one picture in a process of its own."""
    side = round((megapixels * 1e6) ** 0.5 / options.scale)
    source, small, output = folder / f"{side}.tif", folder / f"{SOURCE_TILE}.tif", folder / "out.tif"
    for path, pixels in ((source, side), (small, SOURCE_TILE)):
        if not path.exists():
            write_source(path, pixels)
    address = None if case.workers is None else f"local:{case.workers}"
    with running_cluster(folder, case.workers or 1) if case.running else nullcontext((address, [])) as (address, pids):
        if case.running:  # workers import srno and torch for their first picture
            subprocess.run(upscale(small, output, model, options, address), check=True)
        others = cpu_seconds(pids)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        process = subprocess.Popen(upscale(source, output, model, options, address))
        peak, written = watch(process, pids)
        if not case.running:
            wait_for_orphans()
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        others = cpu_seconds(pids) - others
    if process.returncode:
        sys.exit(process.returncode)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime + others
    pixels = (side * options.scale) ** 2
    return {
        "megapixels": round(pixels / 1e6, 1),
        "workers": case.workers,
        "started": None if case.workers is None else "before" if case.running else "by the command",
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "cpu_microseconds_per_pixel": round(cpu / pixels * 1e6, 3),
        "peak_mb": round(peak / 2**20),
        "written_mb": round(written / 2**20),
        "output_mb": round(output.stat().st_size / 2**20),
    }


def run_all(
    folder: Path, megapixels: int, options: argparse.Namespace, model: str, cases: list[Case]
) -> list[dict[str, float | str | None]]:
    """Measure every case once; each is reported on standard error as it is ready."""
    rows: list[dict[str, float | str | None]] = []
    for case in cases:
        rows.append(measure(folder, megapixels, options, model, case))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Print one JSON object per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megapixels", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    parser.add_argument("--running", action="store_true", help="measure workers that were started before, too")
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
    adopt_orphans()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        model = write_model(options.model, folder)
        ways = (False, True) if options.running else (False,)
        cases = [Case(), *(Case(workers, running) for workers in options.workers for running in ways)]
        for megapixels in options.megapixels:
            rows = [run_all(folder, megapixels, options, model, cases) for _ in range(options.repeats)]
            for same in zip(*rows, strict=True):
                print(json.dumps(min(same, key=lambda row: float(row["cpu_seconds"] or 0))), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
