"""Measure how far pixels move when the kernel integral is estimated from sample windows instead of every pixel.

    python benchmarks/lazy_integral.py --scale 2 EVALUATION/CLIC4/HR/*.webp
    python benchmarks/lazy_integral.py --scale 4 EVALUATION/Set14/HR/img_0{01,02,11,13}.png

The pictures are enlarged as they are. Prints a Markdown table with one row per picture. For each version of the page's
integral, and for as many points anywhere in the picture: PSNR against the exact integral over tiles spread over the
picture, then the largest and the mean difference in levels of 255.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from srno.checkpoints.catalogue import load
from srno.field.blocks import BlockField
from srno.field.engine import Integrals
from srno.field.field import Field, Region, lift
from srno.field.quadrature import low_discrepancy
from srno.field.sample_windows import QUADRATURE_POINTS, SAMPLE_COUNTS
from srno.imaging.picture import to_float
from srno.imaging.read import read
from srno.operator.model import Model
from srno.server.store import Store

TILES = 12
TILE_SIDE = 192


def regions(size: tuple[int, int], scale: float) -> list[Region]:
    """Tiles that are spread evenly over a picture."""
    side = TILE_SIDE / scale
    rows, columns = low_discrepancy(TILES, (int(size[0] - side), int(size[1] - side)), torch.device("cpu"))
    return [(top, left, top + side, left + side) for top, left in zip(rows.tolist(), columns.tolist(), strict=True)]


def tiles(field: Field, integrals: Integrals, scale: float) -> Tensor:
    """The tiles in levels of 255, clamped but not rounded."""
    rendered = [
        field.render((TILE_SIDE, TILE_SIDE), region=region, integrals=integrals)
        for region in regions(field.size, scale)
    ]
    return torch.stack(rendered).clamp(-1, 1) * 127.5


def movement(seen: Tensor, exact: Tensor) -> str:
    """PSNR, largest and mean difference."""
    off = (seen - exact).abs()
    psnr = 10 * math.log10(255**2 / max(float(off.square().mean()), 1e-12))
    return f"{psnr:.1f} dB, {off.max():.2f}, {off.mean():.3f}"


def row(path: Path, model: Model, scale: float) -> list[str]:
    """The cells of one picture."""
    image = torch.from_numpy(to_float(np.broadcast_to(*_rgb(path)))).permute(2, 0, 1) * 2 - 1
    field = lift(model, image)
    size = (round(field.size[0] * scale), round(field.size[1] * scale))
    blocks = BlockField(model=model, size=field.size, pixels=lambda y, x: image[:, y, x], cache=Store(1 << 30))
    exact = tiles(field, field.integrate(size, integral="exact"), scale)
    estimates = [blocks.integrate(size, version) for version in range(1, blocks.versions + 1)]
    estimates.append(field.integrate(size, integral=QUADRATURE_POINTS))
    name = f"{path.parent.parent.name}/{path.stem}, {field.size[1]}×{field.size[0]}"
    return [name, *(movement(tiles(field, layers, scale), exact) for layers in estimates)]


def _rgb(path: Path) -> tuple[np.ndarray, tuple[int, int, int]]:
    colour = read(path).colour
    return colour, (*colour.shape[:2], 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+", type=Path)
    parser.add_argument("--model", default="default")
    parser.add_argument("--scale", type=float, default=2)
    arguments = parser.parse_args()
    model = load(arguments.model)
    heads = [f"{count:,} windows" for count in SAMPLE_COUNTS]
    print(
        f"| picture at ×{arguments.scale:g} | " + " | ".join([*heads, f"{QUADRATURE_POINTS:,} points anywhere"]) + " |"
    )
    print("| --- " * (2 + len(heads)) + "|")
    for path in arguments.pictures:
        print("| " + " | ".join(row(path, model, arguments.scale)) + " |", flush=True)


if __name__ == "__main__":
    main()
