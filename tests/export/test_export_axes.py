"""Positions in integers against those of the operator in float64, at sizes that no model is run on here."""

from functools import cache
from typing import Literal

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from export.exported import open_session, run_session
from srno.export.axes import point_axes, whole_axes
from srno.export.graph import Graph
from srno.field.quadrature import golden_lattice, integral_points
from srno.operator.grid import BORDER_SHIFT, nearest_pixel, neighbours, offset
from srno.operator.projection import make_skip
from srno.operator.sampling import whole_picture

CPU = torch.device("cpu")
ROUNDING = 1e-6


@cache
def axis_session() -> onnxruntime.InferenceSession:
    """Everything that an axis computes, along y."""
    graph = Graph("float32")
    features = graph.input("features", "float32", (1, 1, "h", "w"), "")
    y, _ = whole_axes(graph, features, graph.input("size", "int64", (2,), ""))
    (below, above), (lower_share, upper_share) = y.neighbours()
    nearest, (low, high, weight) = y.nearest(), y.between()
    outputs = {"lower": below.index, "upper": above.index, "lower_delta": below.delta, "upper_delta": above.delta}
    outputs |= {"lower_share": lower_share, "upper_share": upper_share, "cell": y.cell()}
    outputs |= {"nearest": nearest.index, "nearest_delta": nearest.delta}
    outputs |= {"low": low, "high": high, "weight": weight}
    for name, value in outputs.items():
        graph.output(name, value, "")
    return open_session(graph.finish("axis", "", {}))


def axis(lr: int, size: int) -> dict[str, np.ndarray]:
    session = axis_session()
    inputs = {"features": np.zeros((1, 1, lr, 1), np.float32), "size": np.array([size, 1])}
    return dict(zip([each.name for each in session.get_outputs()], run_session(session, inputs), strict=True))


@settings(max_examples=150)
@given(st.integers(1, 3000), st.integers(1, 20000))
def test_neighbours_are_those_of_the_operator(lr: int, size: int):
    found = axis(lr, size)
    x = whole_picture((lr, 1), (size, 1)).axis(0, CPU)
    expected = neighbours(x, lr)
    assert np.array_equal(np.stack([found["lower"], found["upper"]], 1), expected.index)
    assert np.abs(np.stack([found["lower_delta"], found["upper_delta"]], 1) - expected.delta.numpy()).max() < ROUNDING
    assert np.abs(np.stack([found["lower_share"], found["upper_share"]], 1) - expected.share.numpy()).max() < ROUNDING
    nearest = nearest_pixel(x + BORDER_SHIFT, lr)
    assert np.array_equal(found["nearest"], nearest)
    assert np.abs(found["nearest_delta"] - offset(x, nearest, lr).numpy()).max() < ROUNDING


def test_queries_within_the_shift_belong_to_the_upper_pixel():
    """The case is real: at these sizes the shift decides for pixels that are strictly below a border."""
    lr, size = 1000, 3701
    x = whole_picture((lr, 1), (size, 1)).axis(0, CPU)
    plain = torch.floor((x + 1) * (lr / 2) - 0.5).long().clamp(0, lr - 1)
    assert (axis(lr, size)["lower"] != plain.numpy()).sum() > 0


@settings(max_examples=50)
@given(st.integers(1, 400), st.integers(1, 1500))
def test_bilinear_stencils_give_the_same_values(lr: int, size: int):
    found = axis(lr, size)
    ramp = torch.arange(lr, dtype=torch.float64).square().reshape(1, 1, lr, 1).expand(1, 3, lr, 1)
    skip = make_skip(ramp, whole_picture((lr, 1), (size, 1)))
    low, high, weight = (part.numpy() for part in skip.y)
    expected = (1 - weight) * low.astype(float) ** 2 + weight * high.astype(float) ** 2
    ours = (1 - found["weight"]) * found["low"].astype(float) ** 2 + found["weight"] * found["high"].astype(float) ** 2
    assert np.abs(ours - expected).max() < ROUNDING * max(1, lr**2)


@pytest.mark.parametrize(("lr", "size", "cell"), [(10, 10, 2), (10, 25, 0.8), (10, 40, 0.5), (10, 90, 0.5), (9, 3, 6)])
def test_the_cell_is_clamped_beyond_4(lr: int, size: int, cell: float):
    assert axis(lr, size)["cell"] == pytest.approx([cell])


@cache
def points_session(points: int | Literal["auto"]) -> onnxruntime.InferenceSession:
    graph = Graph("float32")
    features = graph.input("features", "float32", (1, 1, "h", "w"), "")
    y, x = point_axes(graph, features, graph.input("size", "int64", (2,), ""), points)
    graph.output("rows", y.places, "")
    graph.output("columns", x.places, "")
    return open_session(graph.finish("points", "", {}))


@settings(max_examples=60)
@given(st.sampled_from([1, 7, 500, 20000, "auto"]), st.integers(1, 9000), st.integers(1, 9000))
def test_points_are_those_of_the_engine(points: int | Literal["auto"], height: int, width: int):
    inputs = {"features": np.zeros((1, 1, 2, 2), np.float32), "size": np.array([height, width])}
    rows, columns = run_session(points_session(points), inputs)
    n = integral_points(points, (height, width))
    if n is None:
        expected = np.indices((height, width)).reshape(2, -1)
        assert np.array_equal(np.stack([rows, columns]), expected)
        return
    expected_rows, expected_columns = golden_lattice(n, (height, width), CPU)
    assert np.array_equal(rows, expected_rows.numpy())
    apart = np.abs(columns - expected_columns.numpy())
    # 30 bits instead of 53: a point on the border of two pixels may be in the other one
    assert np.isin(apart, (0, 1, width - 1)).all()
    assert np.count_nonzero(apart) <= 1 + n / 1000
