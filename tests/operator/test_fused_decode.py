"""The rearranged decoder has the values and the gradients of the textbook one."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from small_models import CONFIGS, random_coords, random_image, random_model
from srno.config import SRNOConfig
from srno.operator import fused
from srno.operator.fused import UnitMoments
from srno.operator.grid import cell_of
from srno.operator.srno import SRNO
from tolerances import assert_close

Decode = Callable[[SRNO, Tensor, Tensor, Tensor, Tensor], Tensor]


def textbook(model: SRNO, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
    return model.decode(features, image, coords, cell)


def rearranged(model: SRNO, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
    return model.prepare(features, image, cell)(coords)


def value_and_gradients(decode: Decode, model: SRNO) -> dict[str, Tensor]:
    """The values and their gradients with respect to features, picture, coordinates, cell and every parameter."""
    image = random_image(5, 4, batch=2).requires_grad_()
    coords = random_coords(23, batch=2).requires_grad_()
    cell = torch.cat([cell_of(1.7, 2.9), cell_of(3.3, 1.2)]).requires_grad_()
    features = model.encoder(image.detach()).detach().requires_grad_()
    inputs = {"features": features, "image": image, "coords": coords, "cell": cell}
    decoder = {name: tensor for name, tensor in model.named_parameters() if not name.startswith("encoder.")}
    answer = decode(model, features, image, coords, cell)
    weights = torch.randn(answer.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    wanted = inputs | decoder
    gradients = torch.autograd.grad((answer * weights).sum(), list(wanted.values()))
    return {"answer": answer} | dict(zip(wanted, gradients, strict=True))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_values_and_gradients_equal_those_of_the_textbook(config: SRNOConfig) -> None:
    model = random_model(config)
    expected = value_and_gradients(textbook, model)
    actual = value_and_gradients(rearranged, model)
    for name, tensor in expected.items():
        assert tensor.abs().max() > 0, f"{name} has no gradient to compare"
        assert_close(actual[name], tensor)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_weights_of_any_dtype(dtype: torch.dtype) -> None:
    model = random_model(CONFIGS["edsr"])
    image, coords, cell = random_image(5, 4), random_coords(23), cell_of(1.7, 2.9)
    with torch.no_grad():
        features = model.encoder(image)
        expected = model.decode(features, image, coords, cell)
        narrow = (features.to(dtype), image.to(dtype), coords.float(), cell.float())
        answer = rearranged(model.to(dtype), *narrow)
    assert answer.dtype == dtype
    assert_close(answer, expected)


def test_a_head_without_variance_is_finite() -> None:
    """A head whose keys are all equal gives finite values and gradients in both forms."""
    model = random_model(CONFIGS["edsr"])
    for parameter in model.kernel_layers()[0].key.parameters():
        parameter.data[:4] = 0
    expected = value_and_gradients(textbook, model)
    actual = value_and_gradients(rearranged, model)
    for name, tensor in expected.items():
        assert tensor.isfinite().all()
        assert_close(actual[name], tensor)


def test_moments_are_additive_over_chunks() -> None:
    layer = random_model(CONFIGS["edsr"]).kernel_layers()[0]
    z = torch.randn(2, 30, 12, dtype=torch.float64)
    whole = fused.moments(layer, z)
    parts = fused.moments(layer, z[:, :7]) + fused.moments(layer, z[:, 7:])
    assert_close(fused.integral(layer, parts, 30), fused.integral(layer, whole, 30))


def test_the_gradient_of_points_without_variance_is_finite() -> None:
    """If k and v are zero, the gradient is that of a division by ε, and finite."""
    layer = random_model(CONFIGS["edsr"]).kernel_layers()[0]
    z = torch.zeros(1, 5, 12, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        for linear in (layer.key, layer.value):
            linear.bias.fill_(1.0)  # constant over a head, so the mean removes it
    sums = fused.moments(layer, z)
    assert not sums.kv.any()
    (sums.k.sum() + sums.v[0, 0, 0]).backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()
    assert z.grad.any()


def test_the_gradient_of_the_moments_passes_gradcheck() -> None:
    layer = random_model(CONFIGS["edsr"]).kernel_layers()[0]
    z = torch.randn(2, 6, 12, dtype=torch.float64, requires_grad=True)
    weight, bias = (a.detach().requires_grad_() for a in fused.centred_key_value(layer))
    assert torch.autograd.gradcheck(lambda *a: UnitMoments.apply(*a, layer.heads), (z, weight, bias))
