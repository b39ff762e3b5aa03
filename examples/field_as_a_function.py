"""A picture as a function: zoom into it, differentiate it, warp it.

    python examples/field_as_a_function.py [PICTURE] [FOLDER]

The default picture is the bundled cat. Writes zoom.png, gradient.png and warp.png to FOLDER (the current one if none is
given).
"""

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

import srno

SIDE = 160
"""Height and width of each output picture, in pixels."""


def read(path: Path) -> Tensor:
    """Read a picture as (3, h, w) in [-1, 1], the input of a model."""
    pixels = np.array(Image.open(path).convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1) / 127.5 - 1


def write(rgb: Tensor, path: Path) -> None:
    """Write (3, h, w) in [-1, 1] to a file."""
    pixels = ((rgb.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
    Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(path)
    print(path)


def zoom(field: srno.Field) -> Tensor:
    """Render an eighth of the picture's height and width at SIDE² pixels."""
    height, width = field.size
    top, left = 0.40 * height, 0.40 * width
    return field.render((SIDE, SIDE), region=(top, left, top + height / 8, left + width / 8))


def gradient(field: srno.Field) -> Tensor:
    """Norm of the derivative with respect to the coordinates, by autograd; exact up to rounding."""
    coords, cell = grid(), cell_for(field)
    coords.requires_grad_()
    brightness = field(coords, cell).mean(-1)
    (slope,) = torch.autograd.grad(brightness.sum(), coords)
    length = slope.norm(dim=-1)
    return (length / length.quantile(0.99) * 2 - 1).expand(3, -1, -1)


def warp(field: srno.Field) -> Tensor:
    """Draw a swirl: the field is evaluated at moved points, without resampling pixels."""
    coords = grid()
    radius = coords.norm(dim=-1)
    angle = 2.5 * (1 - radius).clamp(min=0) ** 2
    y, x = coords.unbind(-1)
    moved = torch.stack([y * angle.cos() - x * angle.sin(), y * angle.sin() + x * angle.cos()], dim=-1)
    with torch.no_grad():
        return field(moved.clamp(-1, 1), cell_for(field)).permute(2, 0, 1)


def grid() -> Tensor:
    """(SIDE, SIDE, 2) pixel centres of [-1, 1]², as (y, x)."""
    centres = (2 * torch.arange(SIDE) + 1) / SIDE - 1
    return torch.stack(torch.meshgrid(centres, centres, indexing="ij"), dim=-1)


def cell_for(field: srno.Field) -> Tensor:
    """(2,) size of a pixel of that grid, in half pixels of the picture."""
    height, width = field.size
    return torch.tensor([2 * height / SIDE, 2 * width / SIDE])


def main(arguments: list[str]) -> None:
    bundled = Path(srno.__file__).parent / "examples" / "cat.png"
    folder = Path(arguments[1]) if len(arguments) > 1 else Path()
    image = read(Path(arguments[0]) if arguments else bundled)
    field = srno.lift(srno.load("default"), image)  # encoded once
    print(field)
    write(zoom(field), folder / "zoom.png")
    write(gradient(field), folder / "gradient.png")
    write(warp(field), folder / "warp.png")


if __name__ == "__main__":
    main(sys.argv[1:])
