"""Measure the engine: speed relative to the textbook forward and to the matrix-product rate, and peak memory.

    python benchmarks/engine.py                    speed, about four minutes on two cores
    python benchmarks/engine.py --memory           1024² → 4096² within 2 GB, about ten minutes more

Variants are interleaved and the best of several runs counts, so that other load affects all of them equally.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from srno.checkpoints.build import create_model
from srno.config import SRNOConfig, preset
from srno.evaluation.cost import profile
from srno.field.field import lift
from srno.operator.grid import cell_of, make_grid

SIZES = ((96, 384), (64, 512), (256, 512))
QUADRATURE_POINTS = 16384
PRODUCT_SECONDS = 1.0
"""How long the matrix-product rate is measured."""


def product_rate(rows: int, width: int) -> float:
    """FLOP/s of bare rows×width×width fp32 products, sustained for about as long as a render takes.

    A single product takes a few milliseconds, and on a shared machine its best time overestimates the sustained rate.
    """
    a, b, out = torch.randn(rows, width), torch.randn(width, width), torch.empty(rows, width)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < PRODUCT_SECONDS:
        for _ in range(10):
            torch.mm(a, b, out=out)
        count += 10
    return count * 2 * rows * width * width / (time.perf_counter() - start)


def engine_flops(config: SRNOConfig, lr: int, size: int, *, quadrature: bool) -> float:
    """FLOPs of the engine's products: 2 × MACs, encoder included."""
    d, encoder = config.d_z, profile(config, (lr, lr), (8, 8)).parts["encoder"].flops
    per_layer = 2 * d * d + (0 if quadrature else 2 * d * d + d * config.head_width)
    per_pixel = config.iterations * per_layer + (d + 3) * config.projection_width
    return encoder + 2 * (size**2 * per_pixel + lr**2 * 4 * d * config.encoder.channels)


def measure(variants: dict[str, Callable[[], object]], repeats: int, rates: list[float]) -> dict[str, float]:
    """Best seconds of each variant, interleaved; the product rate is measured in the same rounds."""
    best = dict.fromkeys(variants, float("inf"))
    for _ in range(repeats):
        for name, variant in variants.items():
            start = time.perf_counter()
            variant()
            best[name] = min(best[name], time.perf_counter() - start)
        rates.append(product_rate(4096, 256))
    return best


@torch.no_grad()
def speed(name: str, repeats: int) -> None:
    config = preset(name)
    assert isinstance(config, SRNOConfig)
    model = create_model(config).eval()
    for lr, size in SIZES:
        image = torch.rand(1, 3, lr, lr) * 2 - 1
        grid, cell = make_grid(size, size).unsqueeze(0), cell_of(size / lr, size / lr)
        variants: dict[str, Callable[[], object]] = {
            "textbook": lambda image=image, grid=grid, cell=cell: model.reference(image, grid, cell),
            "exact": lambda image=image, size=size: lift(model, image).render((size, size)),
            "quadrature": lambda image=image, size=size: lift(model, image).render(
                (size, size), integral=QUADRATURE_POINTS
            ),
            "encoder": lambda image=image: lift(model, image),
        }
        rates: list[float] = []
        best = measure(variants, repeats, rates)
        per_pixel = "  ".join(f"{variant} {1e6 * seconds / size**2:.2f}" for variant, seconds in best.items())
        share = engine_flops(config, lr, size, quadrature=False) / best["exact"] / max(rates)
        print(f"{name} {lr}² → {size}²: µs per output pixel: {per_pixel}")
        print(
            f"    exact {best['textbook'] / best['exact']:.2f} × textbook, "
            f"quadrature {best['textbook'] / best['quadrature']:.2f} ×; "
            f"products at {max(rates) / 1e9:.0f} GFLOP/s, the exact engine at {100 * share:.0f} % of that; "
            f"encoder {100 * best['encoder'] / best['exact']:.0f} % of the exact engine",
            flush=True,
        )


@torch.no_grad()
def peak(name: str, lr: int, size: int, variant: str, memory: str) -> None:
    """Print the growth of the resident set without input and output arrays; needs a separate process."""
    model = create_model(preset(name)).eval()
    image = torch.rand(1, 3, lr, lr) * 2 - 1
    lift(model, image[..., :64, :64]).render((64, 64))  # libraries that load at first use count as baseline
    baseline = peak_resident()
    start = time.perf_counter()
    if variant == "textbook":
        model.reference(image, make_grid(size, size).unsqueeze(0), cell_of(size / lr, size / lr))
    else:
        lift(model, image, memory=memory).render(
            (size, size), integral=QUADRATURE_POINTS if variant == "quadrature" else "exact"
        )
    seconds = time.perf_counter() - start
    arrays = 4 * 3 * (lr**2 + size**2)
    used, pace = (peak_resident() - baseline - arrays) / 2**20, 1e6 * seconds / size**2
    print(f"{name} {lr}² → {size}² {variant}: {used:.0f} MB, {pace:.2f} µs per pixel", flush=True)


def peak_resident() -> int:
    """Largest resident set of this process so far, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def in_separate_process(*arguments: str) -> None:
    subprocess.run([sys.executable, __file__, "--peak", *arguments], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="*", default=["edsr-baseline", "light"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="measure 1024² → 4096² within 2 GB as well")
    parser.add_argument("--peak", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        name, lr, size, variant, memory = arguments.peak
        peak(name, int(lr), int(size), variant, memory)
        return
    print(f"{torch.get_num_threads()} threads; bare 4096×256×256 product: {product_rate(4096, 256) / 1e9:.0f} GFLOP/s")
    for name in arguments.presets:
        speed(name, arguments.repeats)
    for variant in ("textbook", "exact", "quadrature"):
        in_separate_process("edsr-baseline", "128", "512", variant, "2G")
    if arguments.memory:
        in_separate_process("edsr-baseline", "1024", "4096", "exact", "2G")


if __name__ == "__main__":
    main()
