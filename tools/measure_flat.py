"""Measure how far flat pictures move: the largest difference from their colour, in levels of 255.

    python tools/measure_flat.py light photo

Every colour of {0, 128, 255}³ as a picture of 24×32 pixels at ×2 and ×4, and of 6×5 pixels at ×30, before rounding.
"""

import argparse
from itertools import product

import torch

from srno.upscaling.upscaler import Upscaler

JOBS = ((24, 32, 2), (24, 32, 4), (6, 5, 30))


def largest_error(upscaler: Upscaler, height: int, width: int, scale: int) -> float:
    """The largest difference over all colours, clamped to what a file can hold."""
    worst = 0.0
    for colour in product((0, 128, 255), repeat=3):
        flat = (torch.tensor(colour) / 255).reshape(3, 1, 1).expand(3, height, width)
        found = upscaler(flat * 2 - 1, (height * scale, width * scale)).clamp(-1, 1) / 2 + 0.5
        worst = max(worst, float((found - flat[:, :1, :1]).abs().max()) * 255)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+")
    for name in parser.parse_args().models:
        upscaler = Upscaler(model=name, integral="exact", precision="fp32")
        errors = (f"{w}×{h} at ×{s}: {largest_error(upscaler, h, w, s):.2f}" for h, w, s in JOBS)
        print(f"{name}: " + ", ".join(errors), flush=True)


if __name__ == "__main__":
    main()
