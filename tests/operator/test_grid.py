"""Neighbours, offsets and shares against exact rational arithmetic."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from srno.operator.grid import cell_of, make_grid, neighbours, pixel_centres
from tolerances import TOLERANCE

BORDER_SHIFT = Fraction(1, 10**6)


def exact_centre(i: int, n: int) -> Fraction:
    return Fraction(2 * i + 1, n) - 1


def exact_neighbour(x: Fraction, sign: int, n: int) -> int:
    moved = min(max(x + Fraction(sign, n) + BORDER_SHIFT, -1 + BORDER_SHIFT), 1 - BORDER_SHIFT)
    return min(range(n), key=lambda i: abs(moved - exact_centre(i, n)))


@given(st.integers(1, 400))
def test_pixel_centres(n: int) -> None:
    assert pixel_centres(n).tolist() == pytest.approx([float(exact_centre(i, n)) for i in range(n)], abs=1e-15)


def test_grid_is_rows_first() -> None:
    grid = make_grid(2, 3)
    assert grid.shape == (2, 3, 2)
    assert torch.equal(grid[:, 0, 0], pixel_centres(2))
    assert torch.equal(grid[0, :, 1], pixel_centres(3))
    assert (grid[..., 0] == grid[:, :1, 0]).all()


def test_cell_is_per_axis() -> None:
    assert cell_of(4.0, 2.5, batch=2).tolist() == [[0.5, 0.8], [0.5, 0.8]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(data=st.data())
def test_neighbours_of_a_grid_are_exact(dtype: torch.dtype, data: st.DataObject) -> None:
    """Every query of every grid has its exact neighbours; rounding has no effect on centres and pixel borders."""
    n = data.draw(st.integers(1, 24), label="pixels")
    size = data.draw(st.integers(1, 4 * n), label="queries")
    found = neighbours(pixel_centres(size).to(dtype), n)
    for query in range(size):
        x = exact_centre(query, size)
        pair = [exact_neighbour(x, sign, n) for sign in (-1, 1)]
        assert found.index[query].tolist() == pair
        deltas = [(x - exact_centre(i, n)) * n for i in pair]
        tolerance = TOLERANCE[dtype] * n
        assert found.delta[query].tolist() == pytest.approx([float(delta) for delta in deltas], abs=tolerance)
        total = abs(deltas[0]) + abs(deltas[1])
        shares = [float(abs(other) / total) if total else 0.5 for other in reversed(deltas)]
        if pair[0] == pair[1]:  # then rounding does not change the shares either
            assert found.share[query].tolist() == shares == [0.5, 0.5]
        assert found.share[query].tolist() == pytest.approx(shares, abs=tolerance)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.integers(1, 50))
def test_shares_sum_to_one_and_interpolate(x: list[float], n: int) -> None:
    """Between the outermost centres, the shares are those of linear interpolation, up to the shift of 1e-6."""
    points = torch.tensor(x, dtype=torch.float64)
    found = neighbours(points, n)
    assert (found.share >= 0).all()
    assert torch.allclose(found.share.sum(-1), torch.ones_like(points), rtol=0, atol=1e-12)
    inside = points.abs() < 1 - 1 / n - 1e-5
    interpolated = (found.share * pixel_centres(n)[found.index]).sum(-1)
    assert torch.allclose(interpolated[inside], points[inside], rtol=0, atol=2e-6)
