"""Our models beside networks of a fixed scale: time per output pixel, in one run, in turns.

    python benchmarks/peers.py                      # the default model, presets and EDSR-baseline, fp32 and bf16
    python benchmarks/peers.py --models light --repeats 9 --out peers.md

Shipped models have their weights, others random ones: time does not depend on them. EDSR-baseline for one scale is the
reference of each row: it has 2.0 (×2) and 2.8 (×4) times the multiplications of IMDN, a light network that people use.
All contenders take turns at every job, in another order each round, and the least time of each counts, so that other
load affects all of them. The share of the product rate is counted multiplications over time, against a large matrix
product in the same precision.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from srno.checkpoints.build import create_model
from srno.checkpoints.catalogue import list_models, load
from srno.evaluation.tables import markdown_table
from srno.machine import keep_freed_memory
from srno.operator.model import Model
from srno.rivals.fixed import FixedScale
from srno.upscaling.upscaler import Precision, Upscaler

JOBS = ((180, 320, 2), (180, 320, 4), (540, 960, 2), (360, 640, 2))
"""(height, width, scale) of the pictures; the last and the second give 1280×720."""
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
PRODUCT_SIDE = 2048


@dataclass(frozen=True)
class Contender:
    """A function that enlarges (3, h, w) by one of the scales that it can do."""

    name: str
    precision: Precision
    scale: int | None
    enlarge: Callable[[Tensor, int], object]


def contenders(models: list[str], precisions: list[Precision]) -> list[Contender]:
    """The fixed-scale networks first, then our models, each in every precision."""
    found: list[Contender] = []
    for precision in precisions:
        for scale in sorted({scale for *_, scale in JOBS}):
            found.append(_fixed(scale, precision))
        found += [_ours(name, precision) for name in models]
    return found


def _fixed(scale: int, precision: Precision) -> Contender:
    network = _make(f"edsr/x{scale}", precision)
    assert isinstance(network, FixedScale)

    @torch.no_grad()
    def enlarge(image: Tensor, _scale: int) -> Tensor:
        batch = image.unsqueeze(0).to(DTYPES[precision]).contiguous(memory_format=torch.channels_last)
        return network.upscale(batch)

    return Contender(f"EDSR-baseline ×{scale}", precision, scale, enlarge)


def _ours(name: str, precision: Precision) -> Contender:
    upscaler = Upscaler(model=_make(name, precision), precision=precision)

    def enlarge(image: Tensor, scale: int) -> Tensor:
        return upscaler(image, (image.shape[1] * scale, image.shape[2] * scale))

    return Contender(name, precision, None, enlarge)


def _make(name: str, precision: Precision) -> Model:
    torch.manual_seed(0)
    model = load(name) if name in list_models() else create_model(name)
    return model.to(DTYPES[precision]).eval().requires_grad_(False)


def measure(entries: list[Contender], image: Tensor, scale: int, repeats: int) -> dict[Contender, float]:
    """Least seconds of each contender that can do the scale."""
    able = [entry for entry in entries if entry.scale in (None, scale)]
    best: dict[Contender, float] = {}
    for turn in range(repeats):
        for place in range(len(able)):
            entry = able[(place + turn) % len(able)]
            start = time.perf_counter()
            entry.enlarge(image, scale)
            best[entry] = min(best.get(entry, float("inf")), time.perf_counter() - start)
    return best


def product_rate(dtype: torch.dtype, repeats: int = 8) -> float:
    """Floating-point operations per second of a large matrix product."""
    a, b = (torch.ones(PRODUCT_SIDE, PRODUCT_SIDE, dtype=dtype) for _ in range(2))
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        torch.mm(a, b)
        times.append(time.perf_counter() - start)
    return 2 * PRODUCT_SIDE**3 / min(times)


def flops(entry: Contender, image: Tensor, scale: int) -> int:
    """Counted operations of one run: 2 × multiplications of convolutions and products."""
    with FlopCounterMode(display=False) as counter:
        entry.enlarge(image, scale)
    return counter.get_total_flops()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["light", "wide", "edsr-baseline"])
    parser.add_argument("--precisions", nargs="+", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="write the table to this file as well")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()  # as the commands do

    rates = {name: product_rate(DTYPES[name]) for name in arguments.precisions}
    entries = contenders(arguments.models, arguments.precisions)
    rows: list[list[str]] = []
    for height, width, scale in JOBS:
        image = torch.rand(3, height, width, generator=torch.Generator().manual_seed(0)) * 2 - 1
        best = measure(entries, image, scale, arguments.repeats)
        for entry, seconds in best.items():
            fixed = next(each for each in best if each.scale is not None and each.precision == entry.precision)
            share = flops(entry, image, scale) / seconds / rates[entry.precision]
            pixels = height * width * scale**2
            job = f"{width}×{height} ×{scale}"
            numbers = [
                f"{seconds:.3f}",
                f"{1e6 * seconds / pixels:.2f}",
                f"{seconds / best[fixed]:.2f}",
                f"{share:.0%}",
            ]
            rows.append([f"{entry.name}, {entry.precision}", job, *numbers])
    header = ["model", "job", "seconds", "µs per output pixel", "of EDSR-baseline's time", "share of the product rate"]
    peaks = ", ".join(f"{rate / 1e9:.0f} GFLOP/s in {name}" for name, rate in rates.items())
    notes = [f"{arguments.threads} threads; matrix product of {PRODUCT_SIDE}²: {peaks}; least of {arguments.repeats}."]
    table = markdown_table("Beside a network of a fixed scale", header, rows, notes)
    print(table)
    if arguments.out:
        arguments.out.write_text(table)


if __name__ == "__main__":
    main()
