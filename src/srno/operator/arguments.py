"""Checks of what users give to a model or a field."""

from typing import Any

import torch
from torch import Tensor

from srno.errors import SRNOError, two_whole_numbers

LARGEST_INPUT_VALUE = 2.0
"""Tolerates overshoot of pictures in [-1, 1]; refuses pictures in [0, 255]."""


def checked_image(image: object) -> Tensor:
    """Check a picture and return it as (1, 3, h, w)."""
    if not isinstance(image, Tensor):
        raise SRNOError(f"image is a {type(image).__name__}; give a tensor (3, height, width) in [-1, 1]")
    if image.ndim == 3:
        image = image.unsqueeze(0)
    if image.ndim != 4 or image.shape[:2] != (1, 3) or image.numel() == 0:
        raise SRNOError(f"image has shape {tuple(image.shape)}; give (3, height, width), not empty")
    if image.layout != torch.strided or image.is_meta:
        raise SRNOError(f"image is {'without values' if image.is_meta else 'sparse'}; give a tensor with every value")
    if not image.is_floating_point():
        raise SRNOError(f"image is {image.dtype}; give floats in [-1, 1], such as image / 127.5 - 1")
    low, high = (float(value) for value in image.aminmax())
    if not (low >= -LARGEST_INPUT_VALUE and high <= LARGEST_INPUT_VALUE):  # written so that NaN is refused too
        raise SRNOError(f"image has values from {low:g} to {high:g}; they must lie in [-1, 1]")
    return image


def check_points(coords: object, cell: object) -> None:
    """Refuse coordinates that are not (..., 2), and cells that are not two numbers above 0."""
    if not isinstance(coords, Tensor) or coords.ndim < 1 or coords.shape[-1] != 2 or not coords.is_floating_point():
        raise SRNOError(f"coords {_describe(coords)}: give a tensor of floats (..., 2) in [-1, 1] as (y, x)")
    if not isinstance(cell, Tensor) or cell.numel() != 2 or not bool((cell > 0).all()):
        raise SRNOError(f"cell {_describe(cell)}: give a tensor of two numbers above 0, (2/r_y, 2/r_x)")


def checked_size(size: Any) -> tuple[int, int]:
    """Check a size and return it as (height, width)."""
    try:
        return two_whole_numbers(size)
    except (TypeError, ValueError):
        raise SRNOError(f"size {size!r}: give (height, width), two whole numbers") from None


def check_batch(image: object, dtype: torch.dtype) -> None:
    """Refuse pictures that are not (batch, 3, height, width), or not in the precision of the weights."""
    if not isinstance(image, Tensor):
        raise SRNOError(f"image is a {type(image).__name__}; give a tensor (batch, 3, height, width) in [-1, 1]")
    if not image.is_floating_point():
        raise SRNOError(f"image is {image.dtype}; give floats in [-1, 1], such as image / 127.5 - 1")
    if image.dtype != dtype and not torch.is_autocast_enabled(image.device.type):
        raise SRNOError(f"image is {image.dtype} and the model's weights are {dtype}; give image.to({dtype})")
    if image.ndim != 4 or image.shape[1] != 3 or image.numel() == 0:
        raise SRNOError(f"image has shape {tuple(image.shape)}; it must be (batch, 3, height, width), not empty")


def check_query(image: Tensor, coords: Tensor | None, cell: Tensor | None) -> tuple[Tensor, Tensor]:
    """Check coords (B, ..., 2) and cell (B, 2) for a batch of pictures; return them."""
    if coords is None or cell is None:
        raise SRNOError("give size=(height, width) for a whole picture, or coords and cell for points")
    batch = image.shape[0]
    if coords.ndim < 3 or coords.shape[-1] != 2 or coords.shape[0] != batch or coords.numel() == 0:
        raise SRNOError(f"coords have shape {tuple(coords.shape)}; they must be ({batch}, ..., 2), at least one")
    if cell.shape != (batch, 2):
        raise SRNOError(f"cell has shape {tuple(cell.shape)}; it must be ({batch}, 2), one (2/r_y, 2/r_x) each")
    if coords.dtype not in (torch.float32, torch.float64):
        raise SRNOError(f"coords are {coords.dtype}; below float32 neighbouring pixels cannot be distinguished")
    return coords, cell


def _describe(value: object) -> str:
    return f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"is a {type(value).__name__}"
