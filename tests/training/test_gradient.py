"""One step: fast against reference gradient, accumulated against whole batch, losses and optimisers."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from small_models import CONFIGS, random_model
from srno.checkpoints.build import create_model
from srno.config import EDSRConfig, FixedScaleConfig, LIIFConfig, LTEConfig, MetaSRConfig, MLPConfig, ModelConfig
from srno.data.cache import open_cache
from srno.data.dataset import Sample, SampleDataset, batches
from srno.data.samples import SampleConfig
from srno.operator.model import Model
from srno.training.distributed import World
from srno.training.learner import Average, KernelMuon, make_optimisers, muon_weights, set_rate
from srno.training.loop import Objective, choose_precision, gradient, loss_of
from srno.training.stages import Loss
from tolerances import assert_close
from training.small_runs import small_config

SINGLE_PROCESS = World(0, 1, torch.device("cpu"))
ENCODER = EDSRConfig(channels=5, blocks=2)
SYSTEMS: dict[str, ModelConfig] = {
    "srno": CONFIGS["edsr"],
    "srno -i": CONFIGS["edsr-nearest"],
    "srno on rdn": CONFIGS["rdn"],
    "liif": LIIFConfig(encoder=ENCODER, width=8),
    "lte": LTEConfig(encoder=ENCODER, width=8, frequencies=3),
    "metasr": MetaSRConfig(encoder=ENCODER, width=8),
    "mlp": MLPConfig(encoder=ENCODER, width=8),
    "fixed": FixedScaleConfig(encoder=ENCODER, scale=2),
}


@pytest.fixture(scope="module")
def batch(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    cache = open_cache([pictures], where=tmp_path_factory.mktemp("cache"))
    return next(batches(SampleDataset(cache, SampleConfig(patch=8, points=30)), batch=6, workers=0))


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def make(config: ModelConfig) -> Model:
    torch.manual_seed(0)
    return create_model(config)


@pytest.mark.parametrize("system", SYSTEMS)
def test_loss_and_gradients_equal_those_of_the_reference(system: str, batch: Sample):
    """The reference is model.reference, in double precision."""
    model = make(SYSTEMS[system]).double()
    lr, coords, cell, target = (tensor.double() for tensor in batch)
    fast = loss_of(model(lr, coords, cell), target, "l1")
    fast.backward()
    actual = gradients(model)
    model.zero_grad()
    slow = loss_of(model.reference(lr, coords, cell), target, "l1")
    slow.backward()
    expected = gradients(model)
    assert abs(fast.item() - slow.item()) < 1e-12
    assert actual.keys() == expected.keys()
    scale = max(g.abs().max() for g in expected.values())
    assert all((actual[name] - g).abs().max() < 1e-11 * scale for name, g in expected.items())


@pytest.mark.parametrize("parts", [2, 3, 6])
def test_accumulation_gives_the_gradient_of_the_whole_batch(parts: int, batch: Sample):
    objective = Objective(random_model(CONFIGS["edsr"], dtype=torch.float32))
    config = small_config(Path(), steps=1, stages="8x6x30", clip=None)
    whole = gradient(objective, batch, config, "l1", SINGLE_PROCESS)
    expected = gradients(objective)
    again = gradient(objective, batch, replace(config, accumulate=parts), "l1", SINGLE_PROCESS)
    assert again == pytest.approx(whole, rel=1e-5)
    for name, tensor in gradients(objective).items():
        assert_close(tensor, expected[name])


def test_unequal_parts_are_weighted_by_their_samples(batch: Sample):
    """Five samples in two parts: a process's share of a batch need not divide evenly."""
    objective = Objective(random_model(CONFIGS["edsr"], dtype=torch.float32))
    five = Sample(*(array[:5] for array in batch))
    config = small_config(Path(), steps=1, stages="8x4x30", clip=None)
    whole = gradient(objective, five, config, "l1", SINGLE_PROCESS)
    assert gradient(objective, five, replace(config, accumulate=2), "l1", SINGLE_PROCESS) == pytest.approx(
        whole, rel=1e-5
    )


def test_clipping_limits_the_gradient_norm(batch: Sample):
    objective = Objective(random_model(CONFIGS["edsr"], dtype=torch.float32))
    config = small_config(Path(), steps=1, clip=1e-3)
    _, norm = gradient(objective, batch, config, "l1", SINGLE_PROCESS)
    assert norm > 1e-3
    clipped = torch.cat([g.flatten() for g in gradients(objective).values()]).norm()
    assert float(clipped) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("kind", ["l1", "charbonnier", "rms", "l2"])
def test_losses_equal_hand_computed_values(kind: Loss):
    output = torch.tensor([[0.5, -1.0, 0.0], [0.0, 0.0, 0.0]])[..., None]
    target = torch.tensor([[0.0, 1.0, 0.0], [0.0, 3.0, 0.0]])[..., None]
    roots = ((4.25 / 3) ** 0.5 + 3.0**0.5) / 2
    expected = {"l1": 5.5 / 6, "l2": 13.25 / 6, "charbonnier": 5.5 / 6, "rms": roots}[kind]
    assert float(loss_of(output, target, kind)) == pytest.approx(expected, abs=1e-3)


def test_rms_of_a_perfect_sample_has_a_finite_gradient():
    output = torch.zeros(2, 3, 3, requires_grad=True)
    loss_of(output, torch.zeros(2, 3, 3), "rms").backward()
    assert output.grad is not None
    assert torch.equal(output.grad, torch.zeros(2, 3, 3))


def test_the_bf16_gradient_is_close_to_fp32(batch: Sample):
    objective = Objective(make(SYSTEMS["srno"]))
    config = small_config(Path(), steps=1, clip=None)
    exact, _ = gradient(objective, batch, config, "l1", SINGLE_PROCESS)
    expected = gradients(objective)
    rough, _ = gradient(objective, batch, replace(config, precision="bf16"), "l1", SINGLE_PROCESS)
    assert rough == pytest.approx(exact, rel=1e-2)
    a = torch.cat([g.flatten() for g in expected.values()])
    b = torch.cat([g.flatten() for g in gradients(objective).values()])
    assert b.dtype == torch.float32
    assert float(nn.functional.cosine_similarity(a, b, dim=0)) > 0.99


def test_auto_precision_is_one_of_the_two():
    cpu = torch.device("cpu")
    assert choose_precision("auto", cpu) in ("fp32", "bf16")
    assert choose_precision("fp32", cpu) == "fp32"
    assert choose_precision("bf16", cpu) == "bf16"


def test_muon_takes_kernels_and_matrices_except_those_at_the_picture():
    model = make(SYSTEMS["srno"])
    chosen = {name for name, p in model.named_parameters() if any(p is weight for weight in muon_weights(model))}
    assert "encoder.blocks.0.conv1.weight" in chosen
    assert "layers.0.W1.weight" in chosen
    assert not any(name.endswith("bias") or "norm" in name for name in chosen)
    assert not chosen & {"encoder.head.weight", "projection.rgb.weight"}


def test_muon_on_a_kernel_equals_muon_on_its_matrix():
    torch.manual_seed(0)
    kernel, other = (nn.Parameter(torch.randn(6, 4, 3, 3)) for _ in range(2))
    matrix = nn.Parameter(kernel.detach().clone().reshape(6, 36))
    ours = KernelMuon([kernel], lr=0.1, weight_decay=0.01)
    theirs = torch.optim.Muon([matrix], lr=0.1, weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        kernel.grad = torch.randn(6, 4, 3, 3).contiguous(memory_format=torch.channels_last)
        matrix.grad = kernel.grad.reshape(6, 36).clone()
        ours.step()
        theirs.step()
    assert torch.equal(kernel.reshape(6, 36), matrix)
    assert not torch.equal(kernel, other)


@pytest.mark.parametrize("optimiser", ["muon", "adam"])
def test_every_parameter_has_one_optimiser(optimiser: str):
    model = make(SYSTEMS["srno"])
    optimisers = make_optimisers(model, small_config(Path(), steps=1, optimiser=optimiser))
    taken = [p for each in optimisers for group in each.param_groups for p in group["params"]]
    assert sorted(p.data_ptr() for p in taken) == sorted(p.data_ptr() for p in model.parameters())
    set_rate(optimisers, 0.25)
    assert [group["lr"] / group["peak"] for each in optimisers for group in each.param_groups] == [0.25] * len(
        optimisers
    )


def test_the_average_follows_the_weights():
    model = nn.Linear(2, 2)
    average = Average(model, 0.9)
    first = model.weight.detach().clone()
    with torch.no_grad():
        model.weight += 1
    average.update(model, 0)  # the decay starts at 1/10
    assert_close(average.weights["weight"], first + 0.9)
    average.update(model, 1000)
    assert_close(average.weights["weight"], first + 0.91)
    none = Average(model, None)
    with torch.no_grad():
        model.weight += 1
    none.update(model, 1000)
    assert torch.equal(none.weights["weight"], model.weight)
