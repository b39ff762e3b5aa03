"""Measure the PSNR loss of estimating the kernel integral from N points, on evaluation sets.

    python benchmarks/quadrature.py --data EVALUATION --sets Set5 Set14 B100 --scales 2,4

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
from srno.field.field import lift
from srno.operator.model import Model

POINT_COUNTS = (1024, 4096, 16384, 65536)


def picture_scores(model: Model, picture: SetPicture, scale: Scale) -> list[float]:
    """PSNR with the exact integral, then with each number of points."""
    protocol = PROTOCOLS["benchmark"]
    lr, hr = (pixels.astype(np.float32) / np.float32(255) for pixels in load_pair(picture, scale, protocol))
    field = lift(model, torch.from_numpy(lr).permute(2, 0, 1) * 2 - 1)
    scores: list[float] = []
    for integral in ("exact", *POINT_COUNTS):
        rgb = field.render((hr.shape[0], hr.shape[1]), integral=integral).permute(1, 2, 0) * 0.5 + 0.5
        scores.append(psnr(rgb.clamp(0, 1).numpy(), hr, protocol.channel, protocol.border.pixels(scale)))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--sets", nargs="+", default=["Set5", "Set14", "B100"])
    parser.add_argument("--scales", default="2,4")
    arguments = parser.parse_args()
    model = load(arguments.model)
    print("| set | scale | exact | " + " | ".join(f"{n:,} points: mean (worst)" for n in POINT_COUNTS) + " |")
    print("| --- " * (3 + len(POINT_COUNTS)) + "|")
    for name in arguments.sets:
        (pictures,) = find_sets(arguments.data / name)
        for scale in parse_scales(arguments.scales):
            scores = np.array([picture_scores(model, picture, scale) for picture in pictures.pictures])
            losses = scores[:, 1:] - scores[:, :1]
            cells = [f"{mean:+.4f} ({worst:+.4f})" for mean, worst in zip(losses.mean(0), losses.min(0), strict=True)]
            print(f"| {name} | ×{scale} | {scores[:, 0].mean():.3f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
