"""Which output pixels stand for all of them in a kernel integral."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
import torch
from torch import Tensor

from srno.field.quadrature import golden_lattice, integral_points, low_discrepancy

Spread: TypeAlias = Callable[[int, tuple[int, int], torch.device], tuple[Tensor, Tensor]]


@pytest.mark.parametrize("spread", [golden_lattice, low_discrepancy])
@pytest.mark.parametrize("size", [(512, 512), (288, 352), (7, 4096), (1, 1)])
def test_quadrature_points_are_uniform_over_the_grid_and_within_picture_pixels(spread: Spread, size: tuple[int, int]):
    rows, columns = spread(4096, size, torch.device("cpu"))
    assert 0 <= int(rows.min()) <= int(rows.max()) < size[0]
    assert 0 <= int(columns.min()) <= int(columns.max()) < size[1]
    if min(size) >= 64:
        within_a_pixel = (rows % 4) * 4 + columns % 4  # at ×4
        over_the_picture = (4 * rows // size[0]) * 4 + 4 * columns // size[1]
        for cells in (within_a_pixel, over_the_picture):
            assert torch.bincount(cells, minlength=16).float().div(4096 / 16).sub(1).abs().max() < 0.2


@pytest.mark.parametrize("size", [(480, 320), (320, 4800), (3000, 64)])
@pytest.mark.parametrize("n", [300, 1000, 4097])
def test_points_of_the_lattice_keep_their_distance_on_grids_of_any_shape(size: tuple[int, int], n: int):
    places = torch.stack(golden_lattice(n, size, torch.device("cpu")), dim=-1).double()
    distances = torch.cdist(places, places) + torch.eye(n) * 1e9
    spacing = (size[0] * size[1] / n) ** 0.5
    assert distances.min() > 0.6 * spacing - 2**0.5  # a point moves to the centre of its pixel


@pytest.mark.parametrize(
    ("size", "points"),
    [((100, 200), None), ((256, 256), 24576), ((720, 1280), 28800), ((2160, 3840), 131072), ((9000, 9000), 131072)],
)
def test_auto_takes_more_points_for_larger_outputs_up_to_a_limit(size: tuple[int, int], points: int | None):
    assert integral_points("auto", size) == points
