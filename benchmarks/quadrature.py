"""Measure the PSNR loss of shortcuts on evaluation sets: the kernel integral from N points, and products in bf16.

    python benchmarks/quadrature.py --data EVALUATION --sets Set5 Set14 B100 --scales 2,3,4 --points 4096 16384
    python benchmarks/quadrature.py --data EVALUATION --points 16384 --precisions fp32 bf16

Prints a Markdown table: mean PSNR with the exact integral in fp32, and for each shortcut the mean difference and that
of the worst picture. A picture with fewer output pixels than N has the exact integral.
"""

import argparse
import copy
from pathlib import Path

import numpy as np
import torch

from srno.checkpoints.catalogue import load
from srno.evaluation.datasets import SetPicture, find_sets, load_pair
from srno.evaluation.metrics import psnr
from srno.evaluation.protocols import PROTOCOLS, Scale, parse_scales
from srno.field.field import Field, Integral, lift
from srno.operator.model import Model

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def picture_scores(models: dict[str, Model], picture: SetPicture, scale: Scale, counts: list[int]) -> list[float]:
    """PSNR with the exact integral in fp32, then with each number of points in each precision."""
    protocol = PROTOCOLS["benchmark"]
    lr, hr = (pixels.astype(np.float32) / np.float32(255) for pixels in load_pair(picture, scale, protocol))
    image = torch.from_numpy(lr).permute(2, 0, 1) * 2 - 1

    def score(field: Field, integral: Integral) -> float:
        rgb = field.render((hr.shape[0], hr.shape[1]), integral=integral).permute(1, 2, 0) * 0.5 + 0.5
        return psnr(rgb.clamp(0, 1).numpy(), hr, protocol.channel, protocol.border.pixels(scale))

    fields = {name: lift(model, image) for name, model in models.items()}
    shortcuts = [score(field, count) for field in fields.values() for count in counts]
    return [score(fields["fp32"], "exact"), *shortcuts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--sets", nargs="+", default=["Set5", "Set14", "B100"])
    parser.add_argument("--scales", default="2,3,4")
    parser.add_argument("--points", type=int, nargs="+", default=[4096, 16384, 32768])
    parser.add_argument("--precisions", nargs="+", default=["fp32"], choices=list(DTYPES))
    arguments = parser.parse_args()
    loaded, counts = load(arguments.model), arguments.points
    names = dict.fromkeys(["fp32", *arguments.precisions])
    models = {name: copy.deepcopy(loaded).to(DTYPES[name]) for name in names}
    columns = [f"{name}, {n:,} points: mean (worst)" for name in names for n in counts]
    print("| set | scale | exact | " + " | ".join(columns) + " |")
    print("| --- " * (3 + len(columns)) + "|")
    for name in arguments.sets:
        (pictures,) = find_sets(arguments.data / name)
        for scale in parse_scales(arguments.scales):
            scores = np.array([picture_scores(models, picture, scale, counts) for picture in pictures.pictures])
            losses = scores[:, 1:] - scores[:, :1]
            cells = [f"{mean:+.4f} ({worst:+.4f})" for mean, worst in zip(losses.mean(0), losses.min(0), strict=True)]
            print(f"| {name} | ×{scale} | {scores[:, 0].mean():.3f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
