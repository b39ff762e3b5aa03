"""Dead units of the encoder: found, reported and restarted."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from small_models import CONFIGS, random_image, random_model
from srno.checkpoints.build import create_model
from srno.checkpoints.native import Card, Checkpoint, write_checkpoint
from srno.config import preset
from srno.errors import SRNOError
from srno.operator.edsr import EDSR, ResidualBlock
from srno.operator.model import Model
from srno.training.distributed import World
from srno.training.learner import Learner
from srno.training.loop import loop
from srno.training.revive import dead_units, hold, revive
from srno.training.run import Run
from training.small_runs import Event, of_kind, small_config, train_here

IMAGES = random_image(12, 11, batch=3)


def blocks(model: Model) -> list[ResidualBlock]:
    assert isinstance(model.encoder, EDSR)
    return [block for block in model.encoder.blocks if isinstance(block, ResidualBlock)]


@torch.no_grad()
def kill(model: Model, block: int, units: slice | list[int]) -> None:
    bias = blocks(model)[block].conv1.bias
    assert bias is not None
    bias[units] = -100


def counts(model: Model, images: Tensor) -> list[int]:
    return [len(units) for units in dead_units(model.encoder, images)]


@pytest.fixture
def model() -> Model:
    """Four blocks: one unit of the first is dead, and all units of the second and the third."""
    config = CONFIGS["edsr"]
    model = random_model(replace(config, encoder=replace(config.encoder, blocks=4)))
    assert counts(model, IMAGES) == [0, 0, 0, 0]
    kill(model, 0, [2])
    kill(model, 1, slice(None))
    kill(model, 2, slice(None))
    return model


def test_dead_units_are_found(model: Model):
    found = dead_units(model.encoder, IMAGES)
    assert found[0].tolist() == [2]
    assert found[1].tolist() == found[2].tolist() == list(range(CONFIGS["edsr"].encoder.channels))
    assert found[3].tolist() == []


def test_revived_units_are_active_and_keep_the_function(model: Model):
    before, channels = model.encoder(IMAGES), CONFIGS["edsr"].encoder.channels
    first, last = (blocks(model)[number].conv1.weight.clone() for number in (0, 3))
    assert [len(units) for units in revive(model.encoder, IMAGES)] == [1, 0, channels, channels]
    assert torch.allclose(model.encoder(IMAGES), before, rtol=0, atol=1e-12)
    assert torch.equal(blocks(model)[0].conv1.weight[:2], first[:2])
    assert torch.equal(blocks(model)[1].conv1.weight, last)  # the dead blocks are behind it now
    assert counts(model, IMAGES) == [0, 0, 0, 0]
    x = model.encoder.get_submodule("head")(IMAGES)
    for block in blocks(model)[:2]:
        x = block(x)
    inside = blocks(model)[2].conv1(x)[..., 1:-1, 1:-1]
    assert inside.mean((0, 2, 3)).abs().max() < 1e-6
    assert torch.allclose(inside.std((0, 2, 3)), x.std((0, 2, 3)).mean())


def test_reviving_the_first_block_leaves_the_second_unchanged():
    model = random_model(CONFIGS["edsr"])
    kill(model, 0, slice(None))
    before, second = model.encoder(IMAGES), blocks(model)[1].conv1.weight.clone()
    assert [len(units) for units in revive(model.encoder, IMAGES)] == [CONFIGS["edsr"].encoder.channels, 0]
    assert torch.equal(model.encoder(IMAGES), before)
    assert torch.equal(blocks(model)[1].conv1.weight, second)
    assert not any(counts(model, IMAGES))


def test_revived_units_get_a_gradient(model: Model):
    """First the weights of conv2, which are zero; once they have changed, the filters of conv1."""
    conv1, conv2 = blocks(model)[2].conv1, blocks(model)[2].conv2
    for expected in ([False, False], [False, True], [True, True]):
        model.zero_grad()
        model.encoder(IMAGES).square().sum().backward()
        learns = [bool(conv.weight.grad is not None and conv.weight.grad.any()) for conv in (conv1, conv2)]
        assert learns == expected
        if not any(expected):
            revive(model.encoder, IMAGES)
        with torch.no_grad():
            for conv in (conv1, conv2):
                assert conv.weight.grad is not None
                conv.weight -= 1e-3 * conv.weight.grad


def test_hold_zeroes_the_gradient_of_fresh_filters_only(model: Model):
    fresh = revive(model.encoder, IMAGES)
    with torch.no_grad():
        blocks(model)[2].conv2.weight += 0.1  # so that the filters get a gradient
    model.encoder(IMAGES).square().sum().backward()
    grads = [blocks(model)[number].conv1.weight.grad for number in (0, 1, 2)]
    first, second, third = (grad.clone() for grad in grads if grad is not None)
    assert third.any()
    hold(model.encoder, fresh)
    others = [unit for unit in range(len(first)) if unit != 2]
    assert grads[0] is not None
    assert not grads[0][2].any()
    assert torch.equal(grads[0][others], first[others])
    assert grads[1] is not None
    assert torch.equal(grads[1], second)
    for parameter in blocks(model)[2].conv1.parameters():
        assert parameter.grad is not None
        assert not parameter.grad.any()


def test_revive_does_not_change_an_encoder_without_dead_units():
    for name in ("edsr", "rdn"):
        model = random_model(CONFIGS[name])
        before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
        assert not any(len(units) for units in revive(model.encoder, IMAGES))
        assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())


def test_other_encoders_have_no_dead_units():
    assert dead_units(nn.Conv2d(3, 3, 1).double(), IMAGES) == []


@pytest.fixture
def with_dead_blocks(tmp_path: Path) -> Path:
    torch.manual_seed(3)
    light = create_model(preset("light"))
    for number in (1, 2):
        kill(light, number, slice(None))
    path = tmp_path / "with_dead_blocks.safetensors"
    write_checkpoint(Checkpoint(config=light.config, state=light.state_dict(), card=Card(name="dead blocks")), path)
    return path


def test_a_run_reports_dead_blocks(with_dead_blocks: Path, pictures: Path, tmp_path: Path):
    config = small_config(pictures, init=with_dead_blocks, steps=1, hold_out=1, validation_pixels=2500)
    events = train_here(config, tmp_path / "run")
    assert of_kind(events, "validation")[-1]["dead"] >= 96
    (note,) = (event["text"] for event in of_kind(events, "note"))
    assert note.startswith("encoder blocks 2, 3 of 12 are dead")
    assert f"--init {tmp_path / 'run' / 'last.safetensors'} --revive" in note


def test_revive_restarts_dead_units_before_the_first_step(with_dead_blocks: Path, pictures: Path, tmp_path: Path):
    """A saved state lists the fresh units, so that a resumed run can hold their filters."""
    config = small_config(pictures, init=with_dead_blocks, revive=True, steps=8, hold_out=1, validation_pixels=2500)
    run = Run(tmp_path / "run")
    events = train_here(config, run.folder)
    assert of_kind(events, "validation")[-1]["dead"] < 48
    (note,) = (event["text"] for event in of_kind(events, "note"))
    assert note.endswith("dead units of the encoder have fresh weights")
    assert int(note.split()[0]) >= 96
    state = run.load_state()
    assert state is not None
    assert [len(units) for units in state["fresh"][-2:]] == [48, 48]

    learner = Learner.begin(config, torch.device("cpu"))
    learner.restore(state)
    learner.model.requires_grad_(requires_grad=True)
    learner.model.encoder(torch.rand(1, 3, 9, 9)).sum().backward()
    learner.hold_fresh()
    conv1 = blocks(learner.model)[-1].conv1
    assert conv1.weight.grad is not None
    assert not conv1.weight.grad.any()
    assert not of_kind(train_here(replace(config, steps=9), run.folder), "note")


def first_filters(folder: Path) -> tuple[Tensor, Tensor]:
    """Filters of a live block and of a revived one, not averaged."""
    state = Run(folder).load_state()
    assert state is not None
    return state["model"]["encoder.blocks.0.conv1.weight"], state["model"]["encoder.blocks.11.conv1.weight"]


def test_fresh_filters_stay_fixed_for_a_quarter_of_the_run(with_dead_blocks: Path, pictures: Path, tmp_path: Path):
    config = small_config(pictures, init=with_dead_blocks, revive=True, steps=8, warmup=0.0, checkpoint_minutes=1e-6)
    seen: list[tuple[Tensor, Tensor]] = []
    run = Run(tmp_path / "run")

    def watch(event: Event) -> None:
        if event["event"] == "step":
            seen.append(first_filters(run.folder))

    assert loop(config, run, World(0, 1, torch.device("cpu")), watch) is None
    seen.append(first_filters(run.folder))
    live, revived = (torch.stack(filters) for filters in zip(*seen, strict=True))
    moved = [bool((a != b).any()) for a, b in pairwise(revived)]
    assert all((a != b).any() for a, b in pairwise(live))
    assert moved == [False] * 2 + [True] * (len(moved) - 2)


def test_revive_without_init_is_refused(pictures: Path):
    with pytest.raises(SRNOError, match="--revive restarts dead units of existing weights: give them with --init"):
        small_config(pictures, revive=True, steps=1)
