"""Measure exported graphs in onnxruntime beside the engine, in their precisions, on the CPU.

    python benchmarks/export.py
    python benchmarks/export.py --presets edsr-baseline --sizes 96x384
    python benchmarks/export.py --threads 1        CPU time of one thread, on a machine that is busy
    python benchmarks/export.py --memory           peak memory of the single graph instead

Prints a Markdown table: µs per output pixel, encoder included. Variants are interleaved and the best of several runs
counts, so that other load affects all of them equally.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import torch

from srno.checkpoints.native import Card
from srno.evaluation.forms import load_or_build
from srno.export.export import Exporter, GraphPrecision
from srno.field.field import lift
from srno.field.quadrature import Integral
from srno.operator.model import Model

POINTS = 16384
INTEGRALS: dict[str, Integral] = {"exact": "exact", f"{POINTS:,} points": POINTS}
ENGINE = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
RUNTIME: tuple[GraphPrecision, ...] = ("fp32", "fp16")
COLUMNS = [*(f"engine {each}" for each in ENGINE), *(f"onnxruntime {each}" for each in RUNTIME)]


def engine_variant(model: Model, image: torch.Tensor, size: int, integral: Integral) -> Callable[[], object]:
    """Lift and render with the engine."""
    return lambda: lift(model, image * 2 - 1).render((size, size), integral=integral)


def runtime_variant(
    model: Model, image: torch.Tensor, size: int, integral: Integral, precision: GraphPrecision
) -> Callable[[], object]:
    """Run the exported graph."""
    points = integral if isinstance(integral, int) else None
    graph = Exporter(model=model, card=Card(name="benchmark"), points=points, precision=precision).whole()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    inputs = {"image": image.numpy(), "size": np.array([size, size])}

    def run() -> object:
        return session.run(None, inputs)

    return run


def peak(preset: str, sides: str, integral: str, precision: GraphPrecision) -> None:
    """Print the memory of one run per output pixel; needs a process of its own."""
    lr, size = (int(side) for side in sides.split("x"))
    model, kind = load_or_build(preset, "cpu"), INTEGRALS[integral]
    runtime_variant(model, torch.rand(1, 3, 16, 16), 32, kind, precision)()  # memory of the libraries
    run = runtime_variant(model, torch.rand(1, 3, lr, lr), size, kind, precision)
    before = peak_resident()
    run()
    print(
        f"{preset} {lr}² → {size}², {integral}, {precision}: {(peak_resident() - before) / size**2:.0f} bytes per pixel"
    )


def peak_resident() -> int:
    """Largest resident set of this process so far, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def best_times(variants: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Best seconds of each variant, interleaved.

    With one thread that is CPU time, which does not count the time of other programs on the same core.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    best = dict.fromkeys(variants, float("inf"))
    for _ in range(repeats):
        for name, variant in variants.items():
            start = clock()
            variant()
            best[name] = min(best[name], clock() - start)
    return best


def speed_row(preset: str, sides: str, integral: str, repeats: int) -> str:
    """One row of the table."""
    lr, size = (int(side) for side in sides.split("x"))
    image = torch.rand(1, 3, lr, lr, generator=torch.Generator().manual_seed(0))
    variants: dict[str, Callable[[], object]] = {}
    for precision in RUNTIME:
        model = load_or_build(preset, "cpu")
        variants[f"onnxruntime {precision}"] = runtime_variant(model, image, size, INTEGRALS[integral], precision)
    for precision, dtype in ENGINE.items():
        model = load_or_build(preset, "cpu").to(dtype)
        variants[f"engine {precision}"] = engine_variant(model, image, size, INTEGRALS[integral])
    best = best_times(variants, repeats)
    cells = [f"{1e6 * best[name] / size**2:.2f}" for name in COLUMNS]
    return f"| {preset} | {lr}² → {size}² | {integral} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="*", default=["light", "edsr-baseline"])
    parser.add_argument("--sizes", nargs="*", default=["96x384"], help="side of the input and of the output")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--memory", action="store_true", help="measure peak memory instead of speed")
    parser.add_argument("--peak", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    jobs = product(arguments.presets, arguments.sizes, INTEGRALS)
    if arguments.peak:
        peak(*arguments.peak)
    elif arguments.memory:
        for job, precision in product(jobs, RUNTIME):
            subprocess.run([sys.executable, __file__, "--peak", *job, precision], check=True)
    else:
        threads = "CPU time of 1 thread" if arguments.threads == 1 else f"{arguments.threads} threads"
        print(f"{threads}, onnxruntime {onnxruntime.__version__}, best of {arguments.repeats}\n")
        print("| model | size | integral | " + " | ".join(COLUMNS) + " |")
        print("| --- " * (3 + len(COLUMNS)) + "|")
        for job in jobs:
            print(speed_row(*job, arguments.repeats), flush=True)


if __name__ == "__main__":
    main()
