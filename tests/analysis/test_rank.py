"""Ranks and distances of matrices whose ranks and distances are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.analysis import effective_rank, kernel_distance, numerical_rank, single_precision_tolerance

SPECTRA = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=20).map(lambda values: np.sort(values)[::-1])


@given(SPECTRA, st.floats(0.01, 100))
def test_the_effective_rank_lies_between_one_and_the_number_and_ignores_the_scale(spectrum: np.ndarray, factor: float):
    found = effective_rank(spectrum)
    assert 1 - 1e-9 <= found <= len(spectrum) * (1 + 1e-9)
    assert effective_rank(spectrum * factor) == pytest.approx(found)


@given(SPECTRA)
def test_zeros_change_neither_rank(spectrum: np.ndarray):
    padded = np.append(spectrum, 0.0)
    assert effective_rank(padded) == pytest.approx(effective_rank(spectrum))
    assert numerical_rank(padded, 1e-3) == numerical_rank(spectrum, 1e-3)


def test_ranks_of_a_known_spectrum():
    # two equal values and two that are a quarter of them: p = 0.4, 0.4, 0.1, 0.1
    spectrum = np.array([4.0, 4.0, 1.0, 1.0])
    assert effective_rank(spectrum) == pytest.approx(0.4**-0.8 * 0.1**-0.2)
    assert [numerical_rank(spectrum, tolerance) for tolerance in (0.9, 0.3, 0.2)] == [2, 2, 4]


def test_the_single_precision_tolerance_is_that_of_matrix_rank():
    """NumPy's default for float32 counts the same singular values."""
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.standard_normal((4000, 6)))
    tolerance = single_precision_tolerance(4000)
    matrix = (q * [1, 0.1, 20 * tolerance, 2 * tolerance, tolerance / 2, tolerance / 20]).astype(np.float32)
    spectrum = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
    assert numerical_rank(spectrum, tolerance) == np.linalg.matrix_rank(matrix) == 4


def test_distances_of_equal_opposite_and_orthogonal_kernels():
    M = np.random.default_rng(1).standard_normal((3, 2, 4, 4))
    np.testing.assert_allclose(kernel_distance(M, M), 0)
    np.testing.assert_allclose(kernel_distance(M, -M), 2)
    np.testing.assert_allclose(kernel_distance(M, 3 * M), 1)
    one, other = np.zeros((2, 1, 1, 2, 2))
    one[..., 0, 0], other[..., 1, 1] = 1, 1
    np.testing.assert_allclose(kernel_distance(one, other), np.sqrt(2))
