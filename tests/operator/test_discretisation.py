"""Discretisation: the result depends on the set of points, not on their order, at a cost linear in their number."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from small_models import CONFIGS, random_coords, random_image, random_model
from srno.checkpoints.build import create_model
from srno.config import SRNOConfig, preset
from srno.operator.grid import cell_of, make_grid
from srno.operator.srno import SRNO
from tolerances import assert_close

every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


@every_config
def test_permuting_the_points_permutes_the_result(config: SRNOConfig) -> None:
    model, image, coords = random_model(config), random_image(5, 6), random_coords(40)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert_close(model(image, coords[:, order], cell_of(2, 3)), model(image, coords, cell_of(2, 3))[:, order])


def test_sorting_random_points_does_not_change_their_values() -> None:
    """Sequential sampling as random points in raster order: each point has the same value, so the loss is the same."""
    model, image = random_model(CONFIGS["edsr"]), random_image(6, 6)
    points = make_grid(15, 15).reshape(-1, 2)
    drawn = torch.randperm(225, generator=torch.Generator().manual_seed(0))[:36]
    ordered, order = drawn.sort()
    assert not torch.equal(ordered, drawn)
    with torch.no_grad():
        at_random = model(image, points[drawn].unsqueeze(0), cell_of(2.5, 2.5))
        in_order = model(image, points[ordered].unsqueeze(0), cell_of(2.5, 2.5))
    assert_close(in_order, at_random[:, order])


@every_config
@pytest.mark.parametrize("times", [2, 5])
def test_repeating_all_points_changes_nothing(config: SRNOConfig, times: int) -> None:
    model, image, coords = random_model(config), random_image(4, 5), random_coords(12)
    with torch.no_grad():
        once = model(image, coords, cell_of(2, 2))
        assert_close(model(image, coords.repeat(1, times, 1), cell_of(2, 2)), once.repeat(1, times, 1))


def test_a_value_depends_on_the_other_points() -> None:
    """The integral is over the given points; otherwise the tests above could not fail."""
    model, image, coords = random_model(CONFIGS["edsr"]), random_image(4, 5), random_coords(12)
    with torch.no_grad():
        alone = model(image, coords[:, :3], cell_of(2, 2))
        among_others = model(image, coords, cell_of(2, 2))[:, :3]
    assert (alone - among_others).abs().max() > 1e-3


@every_config
def test_a_batch_equals_its_items_one_by_one(config: SRNOConfig) -> None:
    model, image, coords = random_model(config), random_image(4, 5, batch=3), random_coords(14, batch=3)
    cell = torch.cat([cell_of(1, 1), cell_of(2, 3.5), cell_of(30, 4)])
    with torch.no_grad():
        together = model(image, coords, cell)
        alone = [model(image[i : i + 1], coords[i : i + 1], cell[i : i + 1]) for i in range(3)]
    assert_close(together, torch.cat(alone))


def test_coordinates_keep_their_shape() -> None:
    model, image = random_model(CONFIGS["edsr"]), random_image(4, 5)
    grid = make_grid(7, 9).unsqueeze(0)
    with torch.no_grad():
        picture = model(image, grid, cell_of(7 / 4, 9 / 5))
        assert picture.shape == (1, 7, 9, 3)
        assert torch.equal(picture.flatten(1, 2), model(image, grid.flatten(1, 2), cell_of(7 / 4, 9 / 5)))


class LargestResult(TorchDispatchMode):
    """Counts the elements of the largest tensor that any operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        self.elements = max(self.elements, *sizes, 0)
        return result


def cost(config: SRNOConfig, n: int, *, fast: bool) -> tuple[int, int]:
    """FLOPs of decoding n points, and the elements of the largest intermediate."""
    # the fused decoder disables autocast for small matrices, and autocast does not support the meta device
    with torch.device("cpu" if fast else "meta"), torch.no_grad():
        model = create_model(config)
        assert isinstance(model, SRNO)
        features, image = torch.zeros(1, config.encoder.channels, 8, 8), torch.zeros(1, 3, 8, 8)
        inputs = (features, image, torch.zeros(1, n, 2), torch.ones(1, 2))
        with FlopCounterMode(display=False) as counter, LargestResult() as largest:
            _ = model.prepare(features, image, inputs[3])(inputs[2]) if fast else model.decode(*inputs)
    return counter.get_total_flops(), largest.elements


@pytest.mark.parametrize("fast", [False, True], ids=["textbook", "fused"])
@pytest.mark.parametrize("name", ["edsr-baseline", "edsr-baseline-i", "light"])
def test_cost_and_memory_are_linear_in_the_points(name: str, fast: bool) -> None:
    """Equal steps in the number of points are equal steps in FLOPs and in the largest intermediate."""
    config = preset(name)
    assert isinstance(config, SRNOConfig)
    (flops1, size1), (flops2, size2), (flops3, size3) = (cost(config, k * 600, fast=fast) for k in (1, 2, 3))
    assert flops3 - flops2 == flops2 - flops1 > 0
    assert size3 - size2 == size2 - size1 > 0
    assert size1 <= 600 * 4 * (config.d_z + config.encoder.channels)
    if not fast:  # every product of the textbook is per point; the fused map is built once per picture
        assert flops2 == 2 * flops1
