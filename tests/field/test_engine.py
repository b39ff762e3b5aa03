"""The engine against the textbook forward, and one plan against another."""

import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from small_models import random_model
from srno.checkpoints.build import create_model
from srno.config import PRESETS, EDSRConfig, RDNConfig, SRNOConfig
from srno.errors import SRNOError
from srno.field import engine
from srno.field.field import Field, lift
from srno.field.plan import Plan
from srno.operator.grid import cell_of, make_grid
from srno.operator.model import Model

TEXTBOOK_TOLERANCE = 1e-4
"""Largest difference to the textbook forward, in the [-1, 1] range."""
PLAN_TOLERANCE = 2e-5
"""Largest difference between any two plans."""

SMALL = SRNOConfig(encoder=EDSRConfig(channels=8, blocks=2), d_z=32, heads=4, iterations=2, projection_width=24)
VARIANTS = {
    "two layers": SMALL,
    "one layer": SRNOConfig(encoder=EDSRConfig(channels=8, blocks=1), d_z=24, heads=3, iterations=1),
    "three layers": SRNOConfig(encoder=EDSRConfig(channels=6, blocks=1), d_z=16, heads=2, iterations=3),
    "nearest": SRNOConfig(encoder=EDSRConfig(channels=8, blocks=1), lifting="nearest", d_z=32, heads=4),
    "rdn": SRNOConfig(encoder=RDNConfig(channels=8, blocks=2, layers=2, growth=4), d_z=32, heads=4),
}


def picture(height: int, width: int, seed: int = 0) -> Tensor:
    return torch.rand(1, 3, height, width, generator=torch.Generator().manual_seed(seed)) * 2 - 1


@torch.no_grad()
def textbook(model: Model, image: Tensor, size: tuple[int, int]) -> Tensor:
    """(3, H, W) directly from the equations, without cell clip."""
    height, width = size
    cell = cell_of(height / image.shape[-2], width / image.shape[-1])
    return model.reference(image, make_grid(height, width).unsqueeze(0), cell)[0].permute(2, 0, 1)


def largest(a: Tensor, b: Tensor) -> float:
    """Largest difference, relative to values above 1: random weights can go far beyond [-1, 1]."""
    return float((a - b).detach().abs().max() / b.detach().abs().max().clamp(min=1))


sides = st.integers(1, 14)
outputs = st.integers(1, 40)


@settings(max_examples=40)
@given(st.sampled_from(sorted(VARIANTS)), sides, sides, outputs, outputs, st.sampled_from([None, 1 << 20, 3 << 20]))
def test_any_size_and_budget_gives_the_textbook_picture(
    variant: str, height: int, width: int, out_height: int, out_width: int, memory: int | None
):
    model = random_model(VARIANTS[variant], seed=3, dtype=torch.float32)
    image = picture(height, width)
    size = (max(height, out_height), max(width, out_width))
    rendered = lift(model, image, memory=memory).render(size, cell_clip=False)
    assert rendered.shape == (3, *size)
    assert largest(rendered, textbook(model, image, size)) < TEXTBOOK_TOLERANCE


@settings(max_examples=40)
@given(st.sampled_from(sorted(VARIANTS)), st.integers(1, 700), st.integers(1, 12), st.booleans())
def test_any_plan_gives_the_same_picture(variant: str, chunk: int, strip: int, keep: bool):
    model = random_model(VARIANTS[variant], seed=4, dtype=torch.float32)
    field = lift(model, picture(11, 9))
    sampling = field._sampling((26, 31), None)

    def run(plan: Plan) -> Tensor:
        with torch.no_grad():
            return field._render(sampling, plan, None, True, lambda _: None)

    assert largest(run(Plan(chunk, strip, keep)), run(Plan(10**6, 10**6, False))) < PLAN_TOLERANCE


@pytest.mark.parametrize("preset", [name for name in PRESETS if "/" not in name and not name.startswith("rdn")])
def test_presets_agree_with_the_textbook(preset: str):
    torch.manual_seed(0)
    model = create_model(PRESETS[preset]).eval()
    image = picture(20, 16)
    assert (
        largest(lift(model, image).render((48, 60), cell_clip=False), textbook(model, image, (48, 60)))
        < TEXTBOOK_TOLERANCE
    )


@pytest.mark.parametrize("preset", ["liif/light", "lte/light", "metasr/light", "mlp/light", "edsr/x2"])
def test_rivals_in_chunks_equal_the_textbook(preset: str):
    torch.manual_seed(0)
    model = create_model(PRESETS[preset]).eval()
    image = picture(9, 12)
    size = (18, 24)
    whole = lift(model, image).render(size, cell_clip=False)
    assert largest(whole, textbook(model, image, size)) < PLAN_TOLERANCE
    assert largest(whole, lift(model, image, memory=1 << 20).render(size, cell_clip=False)) < PLAN_TOLERANCE


@settings(max_examples=30)
@given(st.data())
def test_a_window_equals_the_crop_of_the_whole_picture(data: st.DataObject):
    width, height = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    zoom_x, zoom_y = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    size = (height * zoom_y, width * zoom_x)
    left, top = data.draw(st.integers(0, size[1] - 1)), data.draw(st.integers(0, size[0] - 1))
    right, bottom = data.draw(st.integers(left + 1, size[1])), data.draw(st.integers(top + 1, size[0]))
    field = lift(random_model(SMALL, seed=6, dtype=torch.float32), picture(height, width))
    region = (top / zoom_y, left / zoom_x, bottom / zoom_y, right / zoom_x)
    part = field.render((bottom - top, right - left), region=region)
    assert largest(part, field.render(size)[:, top:bottom, left:right]) < PLAN_TOLERANCE


def test_the_integrals_of_a_scale_are_computed_once(monkeypatch: pytest.MonkeyPatch):
    field = lift(random_model(SMALL, seed=7, dtype=torch.float32), picture(8, 10))
    first = field.render((32, 40))
    integrals = field.integrate((32, 40))
    assert field.integrate((32, 40)) is integrals
    assert field.integrate((32, 41)) is not integrals
    assert field.integrate((32, 40), integral=100) is not integrals

    def refuse(*_: object) -> None:
        raise AssertionError("integrated again")

    monkeypatch.setattr(engine, "KeyValue", refuse)
    assert largest(field.render((32, 40)), first) < PLAN_TOLERANCE
    part = field.render((12, 20), region=(1.0, 2.5, 4.0, 7.5))
    assert largest(part, first[:, 4:16, 10:30]) < PLAN_TOLERANCE


@pytest.mark.parametrize("variant", ["two layers", "nearest", "rdn"])
def test_a_window_decodes_only_its_pixels_and_a_margin(variant: str):
    """The decoder receives only the window and a margin of the picture."""
    field = lift(random_model(VARIANTS[variant], seed=7, dtype=torch.float32), picture(60, 80))
    field.integrate((240, 320), integral=500)
    seen: list[int] = []
    on_grid = type(field.model).on_grid

    def counted(model: Model, features: Tensor, *rest: object, **more: object):
        seen.append(features.shape[0] * features.shape[1])
        return on_grid(model, features, *rest, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(field.model), "on_grid", counted)
        field.render((8, 4), region=(30, 40, 32, 41), integral=500)
    assert seen == [(2 + 2 * 3 + 1) * (1 + 2 * 3 + 1)]


def test_values_at_points_equal_the_rendered_pixels():
    model = random_model(SMALL, seed=8, dtype=torch.float32)
    field = lift(model, picture(8, 10))
    grid = make_grid(24, 30)
    values = field(grid[::5, ::3], torch.tensor([2 / 3, 2 / 3]))
    assert largest(values.permute(2, 0, 1), field.render((24, 30))[:, ::5, ::3]) < PLAN_TOLERANCE


def test_the_field_is_differentiable_in_the_coordinates():
    model = random_model(SMALL, seed=9, dtype=torch.float64)
    field = lift(model, picture(6, 7).double())
    cell = torch.tensor([0.5, 0.5], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    coords = (torch.rand(5, 2, dtype=torch.float64, generator=generator) * 1.6 - 0.8).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: field(x, cell), (coords,))


def test_quadrature_converges_to_the_exact_integral():
    field = lift(random_model(SMALL, seed=10, dtype=torch.float32), picture(16, 16))
    exact = field.render((64, 64))
    errors = [largest(field.render((64, 64), integral=n), exact) for n in (16, 256, 2048)]
    assert errors[2] < errors[0] / 3
    assert largest(field.render((64, 64), integral=64 * 64), exact) == 0


def test_cell_clip_clamps_the_cell_at_scale_four():
    model = random_model(SMALL, seed=11, dtype=torch.float32)
    image = picture(5, 6)
    clipped = lift(model, image).render((15, 60))
    with torch.no_grad():
        expected = model.reference(image, make_grid(15, 60).unsqueeze(0), cell_of(3, 4))[0].permute(2, 0, 1)
    assert largest(clipped, expected) < TEXTBOOK_TOLERANCE
    assert largest(clipped, lift(model, image).render((15, 60), cell_clip=False)) > 1e-3


def test_two_threads_render_from_one_field():
    field = lift(random_model(SMALL, seed=12, dtype=torch.float32), picture(12, 12))
    sizes = [(24, 24), (30, 17), (50, 40), (13, 48)]
    alone = [field.render(size) for size in sizes]
    found: list[list[Tensor]] = [[], []]

    def work(which: int) -> None:
        for _ in range(5):
            found[which] = [field.render(size) for size in sizes]

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for results in found:
        assert all(torch.equal(a, b) for a, b in zip(results, alone, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_weights_keep_fp32_statistics(dtype: torch.dtype):
    model = random_model(SMALL, seed=13, dtype=torch.float32)
    image = picture(10, 10)
    exact = lift(model, image).render((40, 40))
    half = lift(model.to(dtype), image).render((40, 40))
    assert half.dtype == torch.float32
    assert largest(half, exact) < 0.1 * float(exact.abs().max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_does_not_round_the_picture_itself(dtype: torch.dtype):
    model = random_model(SMALL, seed=13, dtype=torch.float32)
    with torch.no_grad():
        model.projection.rgb.weight.zero_()
        model.projection.rgb.bias.zero_()
    image = picture(10, 10)
    exact = lift(model, image).render((40, 40))
    assert largest(lift(model.to(dtype), image).render((40, 40)), exact) < 1e-6


def test_progress_rises_to_one_and_can_cancel():
    field = lift(random_model(SMALL, seed=14, dtype=torch.float32), picture(12, 12), memory=1 << 20)
    seen: list[float] = []
    field.render((48, 48), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)

    class CancelledError(Exception):
        pass

    def cancel(share: float) -> None:
        if share > 0.5:
            raise CancelledError

    with pytest.raises(CancelledError):
        field.render((48, 48), progress=cancel)


@pytest.mark.parametrize("region", [(-1, 0, 2, 2), (0, 0, 0, 2), (0, 0, 2, 20), (3, 0, 2, 2)])
def test_regions_outside_the_picture_are_refused(region: tuple[float, float, float, float]):
    field = lift(random_model(SMALL, seed=15, dtype=torch.float32), picture(8, 8))
    with pytest.raises(SRNOError, match="region"):
        field.render((4, 4), region=region)


def test_a_render_that_runs_out_of_memory_is_retried_in_smaller_pieces(monkeypatch: pytest.MonkeyPatch):
    """Large products request more memory than any system has, so the error is raised by torch itself."""
    field = lift(random_model(SMALL, seed=16, dtype=torch.float32), picture(12, 12))
    expected = lift(field.model, field.image).render((48, 48))
    product, refused = engine.affine_gelu, []

    def limited(z: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        if z.shape[0] > 300:
            refused.append(z.shape[0])
            return torch.empty(1 << 60)
        return product(z, weight, bias)

    monkeypatch.setattr(engine, "affine_gelu", limited)
    assert largest(field.render((48, 48)), expected) < PLAN_TOLERANCE
    assert refused


def test_field_is_immutable():
    field = lift(random_model(SMALL, seed=17, dtype=torch.float32), picture(4, 4))
    assert isinstance(field, Field)
    with pytest.raises(AttributeError):
        field.image = picture(4, 4)  # type: ignore[misc]
