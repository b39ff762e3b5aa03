"""A whole picture at a size: once, or as the mean over its eight flips and rotations, one field in memory at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

from torch import Tensor

from srno.field.field import lift
from srno.field.quadrature import Integral
from srno.machine import default_budget
from srno.operator.model import Model
from srno.progress import Progress, between, part_of


@dataclass(frozen=True)
class Symmetry:
    """One of the eight flips and rotations: rows and columns swapped or not, then mirrored or not."""

    swap: bool
    flips: tuple[int, ...]
    """Axes of (3, h, w) that are mirrored."""

    def apply(self, image: Tensor) -> Tensor:
        """(3, h, w) → (3, h, w) or (3, w, h)."""
        return (image.transpose(1, 2) if self.swap else image).flip(self.flips)

    def undo(self, image: Tensor) -> Tensor:
        """Invert `apply`, at any scale."""
        image = image.flip(self.flips)
        return image.transpose(1, 2) if self.swap else image

    def size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Size of the transformed picture."""
        return (size[1], size[0]) if self.swap else size


SYMMETRIES = tuple(Symmetry(swap, flips) for swap, flips in product((False, True), ((), (1,), (2,), (1, 2))))


def render_picture(
    model: Model,
    image: Tensor,
    size: tuple[int, int],
    *,
    ensemble: bool = False,
    integral: Integral = "auto",
    memory: int | str | None = None,
    cell_clip: bool = True,
    progress: Progress | None = None,
) -> Tensor:
    """Render a picture (3, h, w) in [-1, 1] at `size` = (height, width): (3, height, width).

    With `ensemble`, the result is the mean over the eight flips and rotations of the picture.
    """
    if ensemble:
        # One budget for all, or the free memory of each moment would give eight different plans.
        memory = default_budget(next(model.parameters()).device) if memory is None else memory
        render = partial(render_picture, model, integral=integral, memory=memory, cell_clip=cell_clip)
        return _mean_over_symmetries(render, image, size, progress)
    share = _lifting_share(model, image.shape[-2] * image.shape[-1], size[0] * size[1])
    field = lift(model, image, memory=memory, progress=between(progress, 0, share))
    return field.render(size, integral=integral, cell_clip=cell_clip, progress=between(progress, share, 1))


def _mean_over_symmetries(
    render: Callable[..., Tensor], image: Tensor, size: tuple[int, int], progress: Progress | None
) -> Tensor:
    total: Tensor | None = None
    for i, symmetry in enumerate(SYMMETRIES):
        part = part_of(progress, i, len(SYMMETRIES))
        rendered = symmetry.undo(render(symmetry.apply(image), symmetry.size(size), progress=part))
        total = rendered.contiguous() if total is None else total.add_(rendered)
    assert total is not None
    return total.div_(len(SYMMETRIES))


def _lifting_share(model: Model, lr_pixels: int, pixels: int) -> float:
    """Estimate the share of lifting in the work: one product per parameter and pixel."""
    encoder = sum(parameter.numel() for parameter in model.encoder.parameters())
    decoder = sum(parameter.numel() for parameter in model.parameters()) - encoder
    return encoder * lr_pixels / (encoder * lr_pixels + decoder * pixels)
