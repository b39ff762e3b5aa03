"""Measure the encoder in inference: memory layout, relu in place, and its share of a whole render.

    python benchmarks/encoder.py

The engine uses channels_last and relu in place; this measures the gain of each. Variants are interleaved, and the best
of several runs counts.
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor

from srno.checkpoints.build import create_model
from srno.config import preset
from srno.evaluation.cost import profile
from srno.field.field import lift
from srno.operator.edsr import EDSR, ResidualBlock

SIZES = (64, 96, 256)
REPEATS = 7


def relu_in_new_memory(encoder: EDSR, image: Tensor) -> Tensor:
    """Run the same encoder with a relu that allocates."""
    x = shallow = encoder.head(image)
    for block in encoder.blocks:
        assert isinstance(block, ResidualBlock)
        x = block.conv2(torch.relu(block.conv1(x))) + x
    return shallow + encoder.tail(x)


@torch.no_grad()
def measure(name: str, side: int) -> str:
    """Measure a preset on a picture of side²; return one line."""
    model = create_model(preset(name)).eval()
    encoder = model.encoder
    assert isinstance(encoder, EDSR)
    planar = torch.rand(1, 3, side, side) * 2 - 1
    last = planar.contiguous(memory_format=torch.channels_last)
    variants: dict[str, Callable[[], object]] = {
        "planar": lambda: encoder(planar),
        "channels_last": lambda: encoder(last),
        "channels_last, relu in new memory": lambda: relu_in_new_memory(encoder, last),
        "whole render at ×4": lambda: lift(model, planar).render((4 * side, 4 * side)),
    }
    best = dict.fromkeys(variants, float("inf"))
    for _ in range(REPEATS):
        for variant, run in variants.items():
            start = time.perf_counter()
            run()
            best[variant] = min(best[variant], time.perf_counter() - start)
    flops = profile(model.config, (side, side), (8, 8)).parts["encoder"].flops
    rates = ", ".join(f"{variant} {flops / best[variant] / 1e9:.0f}" for variant in list(variants)[:3])
    share = best["channels_last"] / best["whole render at ×4"]
    return f"{name} {side}²: GFLOP/s: {rates}; {100 * share:.0f} % of a render at ×4"


def main() -> None:
    for name in ("edsr-baseline", "light"):
        for side in SIZES:
            print(measure(name, side), flush=True)


if __name__ == "__main__":
    main()
