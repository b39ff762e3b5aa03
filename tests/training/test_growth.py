"""Larger models initialised from smaller ones."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from small_models import CONFIGS, random_coords, random_image, random_model
from srno.checkpoints.build import create_model
from srno.checkpoints.native import Card, Checkpoint
from srno.config import EDSRConfig, FixedScaleConfig, LIIFConfig, ModelConfig, RDNConfig, SRNOConfig, preset
from srno.errors import SRNOError
from srno.operator.grid import cell_of
from srno.operator.model import Model
from srno.training.grow import grow
from srno.training.loop import loss_of

EDSR = CONFIGS["edsr"]
RDN = CONFIGS["rdn"]
assert isinstance(RDN.encoder, RDNConfig)

GROWTHS: dict[str, tuple[SRNOConfig, SRNOConfig]] = {
    "edsr deeper": (EDSR, replace(EDSR, encoder=replace(EDSR.encoder, blocks=4))),
    "edsr wider": (EDSR, replace(EDSR, encoder=replace(EDSR.encoder, channels=8))),
    "more heads": (EDSR, replace(EDSR, d_z=20, heads=5)),
    "wider projection": (EDSR, replace(EDSR, projection_width=11)),
    "more iterations": (EDSR, replace(EDSR, iterations=4)),
    "nearest": (
        CONFIGS["edsr-nearest"],
        replace(CONFIGS["edsr-nearest"], d_z=9, heads=3, encoder=EDSRConfig(channels=7, blocks=3)),
    ),
    "rdn deeper": (RDN, replace(RDN, encoder=replace(RDN.encoder, blocks=3))),
    "rdn longer blocks": (RDN, replace(RDN, encoder=replace(RDN.encoder, layers=5))),
    "rdn faster growth": (RDN, replace(RDN, encoder=replace(RDN.encoder, growth=3))),
    "rdn all": (
        RDN,
        SRNOConfig(
            encoder=RDNConfig(channels=6, blocks=4, layers=4, growth=5),
            d_z=18, heads=6, iterations=3, projection_width=10,
        ),
    ),
    "edsr all": (
        EDSR,
        SRNOConfig(encoder=EDSRConfig(channels=9, blocks=5), d_z=16, heads=4, iterations=3, projection_width=12),
    ),
}  # fmt: skip


def as_checkpoint(model: Model) -> Checkpoint:
    return Checkpoint(config=model.config, state=model.state_dict(), card=Card(name="small"))


def queries(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    return (
        random_image(7, 6, batch=2).to(dtype),
        random_coords(50, batch=2).to(dtype),
        cell_of(2.5, 3, batch=2).to(dtype),
    )


def train_a_step(model: Model) -> list[str]:
    """Take one step of gradient descent; returns the names of parameters without a gradient."""
    image, coords, cell = queries(next(model.parameters()).dtype)
    target = random_image(10, 15, batch=2, seed=5).to(image.dtype).reshape(2, 50, 9)[..., :3]
    model.zero_grad()
    loss_of(model(image, coords, cell), target, "l2").backward()
    without_gradient = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= 0.1 * parameter.grad
    return without_gradient


@pytest.mark.parametrize("name", GROWTHS)
def test_a_grown_model_computes_the_same_function(name: str):
    old, target = GROWTHS[name]
    small = random_model(old)
    large = grow(as_checkpoint(small), target)
    assert large.config == target
    assert large.training
    with torch.no_grad():
        expected, actual = small(*queries(torch.float64)), large(*queries(torch.float64))
    assert (actual - expected).abs().max() < 1e-12


@pytest.mark.parametrize("name", GROWTHS)
def test_every_parameter_gets_a_gradient_within_three_steps(name: str):
    """A part behind a zero map has no gradient until the map has changed."""
    old, target = GROWTHS[name]
    torch.manual_seed(0)
    large = grow(as_checkpoint(random_model(old)), target)
    without_gradient = [train_a_step(large) for _ in range(3)]
    assert not without_gradient[-1]


@pytest.mark.parametrize("name", GROWTHS)
def test_some_new_weights_change_in_the_first_step(name: str):
    """Some zero entry that the small model does not have changes."""
    old, target = GROWTHS[name]
    small = random_model(old)
    torch.manual_seed(0)
    large = grow(as_checkpoint(small), target)
    before = {key: tensor.clone() for key, tensor in large.state_dict().items()}
    train_a_step(large)
    known = small.state_dict()
    grown = [key for key, tensor in before.items() if key not in known or tensor.shape != known[key].shape]
    zero = {key: (before[key] == 0) & (large.state_dict()[key] != 0) for key in grown}
    assert any(moved.any() for moved in zero.values())


def test_light_grows_to_edsr_baseline():
    light, target = preset("light"), preset("edsr-baseline")
    assert isinstance(light, SRNOConfig)
    small = random_model(light, dtype=torch.float32)
    large = grow(as_checkpoint(small), target)
    with torch.no_grad():
        expected, actual = small(*queries(torch.float32)), large(*queries(torch.float32))
    assert (actual - expected).abs().max() < 2e-5 * expected.abs().max()


def test_equal_configs_keep_the_weights():
    small = random_model(EDSR)
    again = grow(as_checkpoint(small), EDSR)
    assert again.training
    assert all(torch.equal(a, b) for a, b in zip(small.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LIIFConfig(encoder=EDSRConfig(channels=4, blocks=1), width=8), EDSRConfig(channels=4, blocks=3)),
        (FixedScaleConfig(encoder=EDSRConfig(channels=4, blocks=1), mean_shift=True), EDSRConfig(channels=4, blocks=2)),
        (LIIFConfig(encoder=RDN.encoder, width=8), replace(RDN.encoder, blocks=5)),
    ],
    ids=["liif", "fixed scale", "liif on rdn"],
)
def test_other_systems_can_grow_deeper_encoders(old: ModelConfig, new: EDSRConfig | RDNConfig):
    torch.manual_seed(0)
    small = create_model(old).double()
    large = grow(as_checkpoint(small), replace(old, encoder=new))
    with torch.no_grad():
        expected, actual = small(*queries(torch.float64)), large(*queries(torch.float64))
    assert (actual - expected).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("target", "named"),
    [
        (replace(EDSR, encoder=replace(EDSR.encoder, blocks=1)), "blocks cannot go from 2 to 1"),
        (replace(EDSR, encoder=replace(EDSR.encoder, channels=4)), "channels cannot go from 5 to 4"),
        (replace(EDSR, encoder=RDN.encoder), "system and encoder cannot go from srno/edsr to srno/rdn"),
        (LIIFConfig(encoder=EDSR.encoder), "system and encoder cannot go from srno/edsr to liif/edsr"),
        (replace(EDSR, lifting="nearest"), "lifting cannot go from interpolation-free to nearest"),
        (replace(EDSR, iterations=1), "iterations cannot go from 2 to 1"),
        (replace(EDSR, d_z=24), r"the width of a head, d_z/heads, cannot go from 4 to 8"),
        (replace(EDSR, projection_width=6), "projection_width cannot go from 7 to 6"),
    ],
)
def test_a_config_that_would_change_the_function_is_refused(target: ModelConfig, named: str):
    with pytest.raises(SRNOError, match=f"--init: {named}"):
        grow(as_checkpoint(random_model(EDSR)), target)


def test_other_systems_cannot_grow_wider():
    small = LIIFConfig(encoder=EDSRConfig(channels=4, blocks=1), width=8)
    for target, named in (
        (replace(small, width=16), "width cannot go from 8 to 16"),
        (replace(small, encoder=EDSRConfig(channels=5, blocks=1)), "channels cannot go from 4 to 5"),
    ):
        with pytest.raises(SRNOError, match=named):
            grow(as_checkpoint(create_model(small)), target)
