"""Lifting a picture where people wait for it: with progress, and so that it can be called off."""

from dataclasses import dataclass, replace

from torch import Tensor

from srno.inference.engine import Integrals
from srno.inference.field import Field, Progress, Region
from srno.operator.model import Model
from srno.server.store import Once

QUADRATURE = 16384
"""Points of the kernel integral at one zoom level, about as many as training saw."""
LEVELS = 64
"""Zoom levels whose integrals are kept."""
MARGIN = 3
"""Picture pixels around a window that its values may depend on."""


@dataclass(frozen=True, eq=False)
class Lifted:
    """A picture as a function, and the integrals of the zoom levels it was looked at."""

    field: Field
    integrals: Once[tuple[int, int], Integrals]

    def render(self, level: tuple[int, int], rect: tuple[int, int, int, int], progress: Progress) -> Tensor:
        """The pixels (left, top, width, height) of the whole picture at `level` = (width, height): (3, h, w).

        Every part of a level shares its integrals, so parts that touch fit without a seam.
        """
        integrals = self.integrals(level)
        progress(0.0)  # whoever waited for the integrals may have moved on
        field, region = cut_out(self.field, region_of(self.field.size, level, rect))
        return field.render(rect[2:], region=region, integrals=integrals, progress=progress)


def lift(model: Model, image: Tensor, progress: Progress) -> Lifted:
    """Lift (3, h, w) in [-1, 1]."""
    field = model.lift(image, progress=progress)
    return Lifted(field, Once(lambda level: field.integrate(level, integral=QUADRATURE), LEVELS))


def bytes_when_lifted(model: Model, size: tuple[int, int]) -> int:
    """Memory of a picture and its features."""
    return 4 * size[0] * size[1] * (3 + model.config.encoder.channels)


def cut_out(field: Field, region: Region) -> tuple[Field, Region]:
    """A field of no more than `region` needs, and the region in it: work that grows with the window alone."""
    (width, height), (left, top, right, bottom) = field.size, region
    x, y = max(0, int(left) - MARGIN), max(0, int(top) - MARGIN)
    columns, rows = slice(x, min(width, int(right) + MARGIN + 1)), slice(y, min(height, int(bottom) + MARGIN + 1))
    part = replace(field, image=field.image[..., rows, columns], features=field.features[rows, columns])
    return part, (left - x, top - y, right - x, bottom - y)


def region_of(size: tuple[int, int], level: tuple[int, int], rect: tuple[int, int, int, int]) -> Region:
    """Pixels of a level as a region of the picture."""
    (left, top, width, height), x, y = rect, size[0] / level[0], size[1] / level[1]
    return left * x, top * y, min(size[0], (left + width) * x), min(size[1], (top + height) * y)
