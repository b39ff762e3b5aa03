"""Time per output pixel from small pictures to large ones, and what the encoder's halos add.

    python benchmarks/sizes.py
    python benchmarks/sizes.py --megapixels 0.1 1 12 --scale 4 --memory 2G

The picture is random: time does not depend on what it shows. Sizes take turns, and the least time of each counts; those
from `--once` megapixels are measured a single time.
"""

import argparse
import time

import torch

from srno.checkpoints.catalogue import load
from srno.evaluation.tables import markdown_table
from srno.field.encode import tile_pixels
from srno.field.field import ENCODER_BUDGET_SHARE
from srno.field.plan import encoder_tile
from srno.machine import default_budget, keep_freed_memory, parse_memory
from srno.operator.encoder import radius
from srno.upscaling.upscaler import Precision, Upscaler

ASPECT = 1.5


def sides(megapixels: float, scale: int) -> tuple[int, int]:
    """(height, width) of the picture for an output of this many megapixels."""
    height = (megapixels * 1e6 / ASPECT) ** 0.5 / scale
    return round(height), round(ASPECT * height)


def seconds(upscaler: Upscaler, lr: tuple[int, int], scale: int) -> float:
    """Wall clock of one picture, from tensor to tensor."""
    image = torch.rand(3, *lr, generator=torch.Generator().manual_seed(0)) * 2 - 1
    start = time.perf_counter()
    upscaler(image, (lr[0] * scale, lr[1] * scale))
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megapixels", type=float, nargs="+", default=[0.1, 0.5, 2, 8, 24, 60])
    parser.add_argument("--model", default="default")
    parser.add_argument("--scale", type=int, default=2)
    parser.add_argument("--memory")
    parser.add_argument("--precision", default="auto", choices=["auto", "fp32", "bf16"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--once", type=float, default=10, help="megapixels from which one time is enough")
    arguments = parser.parse_args()
    keep_freed_memory()  # as the commands do
    precision: Precision = arguments.precision
    upscaler = Upscaler(model=load(arguments.model), precision=precision, memory=arguments.memory)
    budget = parse_memory(arguments.memory) if arguments.memory else default_budget(torch.device("cpu"))
    encoder = upscaler.operator.encoder
    seconds(upscaler, (64, 96), arguments.scale)
    best: dict[float, float] = {}
    for turn in range(arguments.repeats):
        for size in arguments.megapixels:
            if turn == 0 or size < arguments.once:
                taken = seconds(upscaler, sides(size, arguments.scale), arguments.scale)
                best[size] = min(taken, best.get(size, taken))
    rows: list[list[str]] = []
    for size, taken in best.items():
        height, width = sides(size, arguments.scale)
        tile = encoder_tile(encoder, (height, width), int(ENCODER_BUDGET_SHARE * budget))
        halos = tile_pixels((height, width), tile, radius(encoder)) / (height * width) - 1
        pixels = height * width * arguments.scale**2
        tile_text = "whole" if tile == (height, width) else f"{tile[1]}×{tile[0]}"
        rows.append(
            [f"{pixels / 1e6:.1f} MP", f"{taken:.2f}", f"{1e6 * taken / pixels:.2f}", tile_text, f"{halos:.1%}"]
        )
    header = ["output", "seconds", "µs per output pixel", "tile of the encoder", "halos, share of its work"]
    how = f"{upscaler.product_precision}, {torch.get_num_threads()} threads, budget {budget / 1e9:.1f} GB"
    print(markdown_table(f"Sizes at ×{arguments.scale}", header, rows, [f"{arguments.model}, {how}"]))


if __name__ == "__main__":
    main()
