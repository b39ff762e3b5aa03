"""Two threads against one, on an idle machine and beside other programs, with waiting threads that spin or sleep.

    python benchmarks/waiting.py
    python benchmarks/waiting.py --cores 1 --repeats 9

Each setting is a process that renders when it is told to. All are measured in turns, first alone and then beside a
process per core that only computes; least and median of each are printed, with the ratio to one thread. `sleeping` is
what `srno` sets, `spinning` what OpenMP does by itself.
"""

import argparse
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from statistics import median

from srno.machine import wait_briefly

SETTINGS = {"one thread": (1, True), "two threads, sleeping": (2, True), "two threads, spinning": (2, False)}
RENDERING = """
import sys, time, torch
from srno import lift, load
threads, model, side = int(sys.argv[1]), load(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
image = torch.rand(3, side, side) * 2 - 1
for _ in sys.stdin:
    start = time.perf_counter()
    lift(model, image).render((2 * side, 2 * side), integral=4096)
    print(time.perf_counter() - start, flush=True)
"""
HOG = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
"""Computes until its parent ends, however that happens."""


def start(threads: int, sleeping: bool, model: str, side: int) -> "subprocess.Popen[str]":
    """A process that renders once per line of its input, and prints the seconds."""
    environment = {name: value for name, value in os.environ.items() if name not in wait_names()}
    environment |= {"OMP_NUM_THREADS": str(threads)} | (waiting() if sleeping else {})
    command = [sys.executable, "-c", RENDERING, str(threads), model, str(side)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_names() -> set[str]:
    return {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}


def waiting() -> dict[str, str]:
    """The variables that `srno` sets."""
    wait_briefly()
    return {name: os.environ[name] for name in wait_names() & os.environ.keys()}


def seconds(process: "subprocess.Popen[str]") -> float:
    """Let a process render once."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def measure(processes: dict[str, "subprocess.Popen[str]"], repeats: int) -> dict[str, list[float]]:
    """The seconds of each, measured in turns."""
    turns = [[seconds(process) for process in processes.values()] for _ in range(repeats)]
    return dict(zip(processes, map(list, zip(*turns, strict=True)), strict=True))


def main() -> None:
    """Print the seconds and the ratios to one thread."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="light")
    parser.add_argument("--side", type=int, default=160, help="of the picture that is doubled")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="that a process keeps busy")
    options = parser.parse_args()
    processes = {name: start(*each, options.model, options.side) for name, each in SETTINGS.items()}
    measure(processes, 1)
    results = {"idle": measure(processes, options.repeats)}
    hogs = [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(options.cores)]
    try:
        results["busy"] = measure(processes, options.repeats)
    finally:
        for process in (*hogs, *processes.values()):
            process.kill()
    load = Path("/proc/loadavg").read_text().split()[0]
    print(f"load average {load}")
    for (state, times), (word, summary) in product(results.items(), {"least": min, "median": median}.items()):
        one = summary(times["one thread"])
        shown = (f"{name} {summary(each):.3f} s ({summary(each) / one:.2f})" for name, each in times.items())
        print(f"{state}, {word}: " + ", ".join(shown))


if __name__ == "__main__":
    main()
