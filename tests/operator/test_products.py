"""Fused products equal the plain ones, and are left out where oneDNN has no gradient or no such precision."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from srno.operator import products
from srno.operator.products import add_affine, affine, affine_gelu

DEFINITIONS: dict[str, tuple[Any, Any]] = {
    "affine": (lambda z, hidden, W, b: affine(hidden, W, b), lambda z, hidden, W, b: hidden @ W.T + b),
    "affine_gelu": (
        lambda z, hidden, W, b: affine_gelu(hidden, W, b),
        lambda z, hidden, W, b: torch.nn.functional.gelu(hidden @ W.T + b),
    ),
    "add_affine": (add_affine, lambda z, hidden, W, b: z + hidden @ W.T + b),
}
HALF = pytest.param(
    torch.bfloat16,
    2**-7,
    marks=pytest.mark.skipif(not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this CPU has no bf16"),
)


def arguments(dtype: torch.dtype) -> list[Tensor]:
    """z (37, 6), hidden (37, 11), weight (6, 11) and bias (6,)."""
    return [torch.randn(*shape, dtype=dtype) for shape in ((37, 6), (37, 11), (6, 11), (6,))]


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-14), HALF])
def test_products_equal_their_definition(name: str, dtype: torch.dtype, tolerance: float) -> None:
    product, definition = DEFINITIONS[name]
    given = arguments(dtype)
    with torch.no_grad():
        found = product(*given)
    assert found.dtype == dtype
    expected = definition(*(a.double() for a in given))
    assert float((found.double() - expected).abs().max()) <= tolerance * float(expected.abs().max())


@pytest.mark.parametrize("name", DEFINITIONS)
def test_products_have_gradients(name: str) -> None:
    product, _ = DEFINITIONS[name]
    assert gradcheck(product, [a.requires_grad_() for a in arguments(torch.float64)])


def test_only_what_onednn_can_compute_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    single = torch.ones(2, 2)
    with torch.no_grad():
        assert products._is_fusible(single)
        assert not products._is_fusible(single.double())
        assert not products._is_fusible(single.half())
        assert not products._is_fusible(torch.ones(0, 2))
        assert not products._is_fusible(torch.ones(2, 2, device="meta"))
        with torch.backends.mkldnn.flags(enabled=False):
            assert not products._is_fusible(single)
    assert not products._is_fusible(single)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_an_empty_array_gives_an_empty_result(name: str) -> None:
    product, _ = DEFINITIONS[name]
    z, hidden, W, b = arguments(torch.float32)
    with torch.no_grad():
        assert product(z[:0], hidden[:0], W, b).shape == (0, 6)
