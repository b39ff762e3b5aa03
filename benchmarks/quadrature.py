"""Measure the PSNR loss of estimating the kernel integral from N points, on evaluation sets.

    python benchmarks/quadrature.py --data EVALUATION --sets Set5 Set14 B100 --scales 2,3,4 --points 16384 32768

Prints a Markdown table: mean PSNR with the exact integral, and for each N the mean difference and the worst picture's.
A picture with fewer output pixels than N has the exact integral and no loss.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from srno.checkpoints.catalogue import load
from srno.evaluation.datasets import SetPicture, find_sets, load_pair
from srno.evaluation.metrics import psnr
from srno.evaluation.protocols import PROTOCOLS, Scale, parse_scales
from srno.field.field import Integral, lift
from srno.operator.model import Model


def picture_scores(model: Model, picture: SetPicture, scale: Scale, counts: list[int]) -> list[float]:
    """PSNR with the exact integral, then with each number of points."""
    protocol = PROTOCOLS["benchmark"]
    lr, hr = (pixels.astype(np.float32) / np.float32(255) for pixels in load_pair(picture, scale, protocol))
    field = lift(model, torch.from_numpy(lr).permute(2, 0, 1) * 2 - 1)
    scores: list[float] = []
    integrals: list[Integral] = ["exact", *counts]
    for integral in integrals:
        rgb = field.render((hr.shape[0], hr.shape[1]), integral=integral).permute(1, 2, 0) * 0.5 + 0.5
        scores.append(psnr(rgb.clamp(0, 1).numpy(), hr, protocol.channel, protocol.border.pixels(scale)))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--sets", nargs="+", default=["Set5", "Set14", "B100"])
    parser.add_argument("--scales", default="2,3,4")
    parser.add_argument("--points", type=int, nargs="+", default=[4096, 16384, 32768, 65536])
    arguments = parser.parse_args()
    model, counts = load(arguments.model), arguments.points
    print("| set | scale | exact | " + " | ".join(f"{n:,} points: mean (worst)" for n in counts) + " |")
    print("| --- " * (3 + len(counts)) + "|")
    for name in arguments.sets:
        (pictures,) = find_sets(arguments.data / name)
        for scale in parse_scales(arguments.scales):
            scores = np.array([picture_scores(model, picture, scale, counts) for picture in pictures.pictures])
            losses = scores[:, 1:] - scores[:, :1]
            cells = [f"{mean:+.4f} ({worst:+.4f})" for mean, worst in zip(losses.mean(0), losses.min(0), strict=True)]
            print(f"| {name} | ×{scale} | {scores[:, 0].mean():.3f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
