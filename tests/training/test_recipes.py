"""The recipes are the published ones, number by number; `--recipe compact` is ours."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from srno.checkpoints.build import create_model
from srno.commands.train import train as command
from srno.config import preset
from srno.data.cache import Cache, CachedPicture
from srno.data.degradation import DEGRADATIONS, PhotoSettings
from srno.errors import SRNOError
from srno.training.config import PHOTO_SETTINGS, TrainConfig
from srno.training.feed import hold_out, sample_config
from srno.training.learner import Position, make_optimisers, set_rate
from srno.training.run import from_json, to_json
from srno.training.schedule import Budget, Clock


def parse(*tokens: str) -> TrainConfig:
    _, bound, _ = command.parse_args(["--data", "DIV2K", "--out", "run", *tokens], exit_on_error=False)
    return bound.arguments["config"]


@pytest.fixture(scope="module")
def paper() -> TrainConfig:
    return parse("--recipe", "paper", "--preset", "edsr-baseline")


def div2k() -> Cache:
    """A cache with as many pictures as DIV2K, without their files."""
    pictures = tuple(CachedPicture(Path(f"{i:04}.png"), 1404, 2040, 0, 0) for i in range(800))
    return Cache(Path(), pictures, (), np.zeros(0, np.uint8), np.zeros(0))


def budget(config: TrainConfig) -> Budget:
    training, held_out = hold_out(div2k(), config)
    assert held_out is None
    assert len(training.pictures) == 800
    return Budget(config=config, epoch_samples=800 * config.repeat, clock=Clock())


def rate_at_epoch(config: TrainConfig, epoch: float) -> float:
    return config.rate * budget(config).rate_factor(Position(sample=round(epoch * 16000)))


def test_paper_samples(paper: TrainConfig):
    """HR crops of round(128·r)², r ~ U(1, 4), Pillow bicubic to 128², 128² random points."""
    assert len(paper.all_stages) == 1
    sample = sample_config(paper, paper.all_stages[0])
    assert (sample.patch, sample.points) == (128, 128**2)
    assert (sample.r_min, sample.r_max) == (1, 4)
    assert (sample.sampling, sample.detail, sample.flat, sample.allow_small) == ("random", 0, 0, False)
    crop = np.random.default_rng(0).integers(256, size=(20, 20, 3), dtype=np.uint8)
    expected = np.asarray(Image.fromarray(crop).resize((8, 8), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(
        DEGRADATIONS[sample.degradation](crop, 8, np.random.default_rng(0), sample.photo), expected
    )


def test_paper_batch_epoch_and_length(paper: TrainConfig):
    """Batch 64, 20 passes per picture and epoch: 250 steps; 50 epochs of warm-up and 1000 of cosine."""
    assert paper.all_stages[0].batch == 64
    whole = budget(paper)
    assert whole.epoch_samples / 64 == 250
    assert whole.progress(Position(sample=1050 * 250 * 64)) == 1
    assert whole.progress(Position(sample=1050 * 250 * 64 - 64)) < 1


def test_paper_rate(paper: TrainConfig):
    """4e-5 rising linearly to 4e-4 over 50 epochs, then cosine to 0, changed once an epoch."""
    assert rate_at_epoch(paper, 0) == pytest.approx(4e-5)
    assert rate_at_epoch(paper, 25) == pytest.approx((4e-5 + 4e-4) / 2)
    assert rate_at_epoch(paper, 50) == pytest.approx(4e-4)
    assert rate_at_epoch(paper, 550) == pytest.approx(2e-4)
    assert rate_at_epoch(paper, 1049) == pytest.approx(0, abs=1e-8)
    for epoch in (3, 400):
        assert rate_at_epoch(paper, epoch + 0.99) == rate_at_epoch(paper, epoch)
        assert rate_at_epoch(paper, epoch + 1) != rate_at_epoch(paper, epoch)


def test_paper_optimiser(paper: TrainConfig):
    """Adam alone with its default settings; no decay, clipping or average of weights; L1; fp32."""
    optimisers = make_optimisers(create_model(preset("light")), paper)
    assert [type(each) for each in optimisers] == [torch.optim.Adam]
    default = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=4e-4).param_groups[0]
    set_rate(optimisers, 1.0)
    group = optimisers[0].param_groups[0]
    assert {name: group[name] for name in ("lr", "betas", "eps", "weight_decay", "amsgrad")} == {
        name: default[name] for name in ("lr", "betas", "eps", "weight_decay", "amsgrad")
    }
    assert (paper.clip, paper.ema, paper.loss, paper.precision) == (None, None, "l1", "fp32")
    assert not paper.skip_spikes
    assert 64 % paper.accumulate == 0


@pytest.mark.parametrize("name", ["liif", "lte", "metasr"])
def test_rivals_have_their_published_recipe(name: str):
    """48² patches, batch 16, 2304 points; Adam alone at 1e-4, halved at 200, 400, 600 and 800 of 1000 epochs."""
    config = parse("--recipe", name, "--preset", f"{name}/edsr-baseline")
    sample = sample_config(config, config.all_stages[0])
    assert (sample.patch, config.all_stages[0].batch, sample.points) == (48, 16, 2304)
    assert (sample.r_min, sample.r_max, sample.sampling, sample.detail, sample.flat) == (1, 4, "random", 0, 0)
    assert (config.epochs, budget(config).epoch_samples / 16) == (1000, 1000)
    optimisers = make_optimisers(create_model(preset("light")), config)
    assert [type(each) for each in optimisers] == [torch.optim.Adam]
    assert optimisers[0].param_groups[0]["betas"] == (0.9, 0.999)
    assert (config.clip, config.ema, config.loss, config.precision, config.skip_spikes) == (
        None, None, "l1", "fp32", False
    )  # fmt: skip


def test_the_rivals_rate_is_that_of_multi_step_lr():
    """Epoch by epoch as PyTorch's own scheduler gives it."""
    config = parse("--recipe", "liif", "--preset", "liif/edsr-baseline")
    optimiser = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=1e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones=[200, 400, 600, 800], gamma=0.5)
    whole = budget(config)
    for epoch in range(1000):
        rate = config.rate * whole.rate_factor(Position(sample=epoch * 16000 + 8000))
        assert rate == pytest.approx(scheduler.get_last_lr()[0]), epoch
        optimiser.step()
        scheduler.step()


def test_a_published_recipe_in_minutes_needs_no_rate_per_epoch():
    with pytest.raises(SRNOError, match="--rate-per-epoch has no effect with --minutes"):
        parse("--recipe", "paper", "--minutes", "5")
    config = parse("--recipe", "paper", "--minutes", "5", "--no-rate-per-epoch")
    assert (config.minutes, config.epochs, config.rate_per_epoch) == (5, None, False)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("--minutes", "5", "--validation", "a", "--hold-out", "4"), "--hold-out 4 has no effect with --validation"),
        (("--plot", "run", "--minutes", "5"), "has no effect with --plot"),
    ],
)
def test_a_flag_without_effect_beside_another_is_refused(tokens: tuple[str, ...], words: str):
    with pytest.raises(SRNOError, match=words):
        parse(*tokens)


def test_shares_of_decay_step_are_flags():
    config = parse("--steps", "9", "--constant", "0", "--decay", "step", "--halve-at", "0.5", "0.75")
    assert (config.decay, config.halve_at) == ("step", (0.5, 0.75))


def test_explicit_flags_override_a_recipe():
    config = parse("--recipe", "paper", "--steps", "7", "--clip", "0.5", "--accumulate", "1")
    assert (config.steps, config.epochs, config.clip, config.accumulate) == (7, None, 0.5, 1)
    assert config.optimiser == "adam"


def test_compact_is_the_default():
    config = parse("--minutes", "150")
    assert config == parse("--minutes", "150", "--recipe", "compact")
    assert config == TrainConfig(data="DIV2K", minutes=150)  # pyright: ignore[reportArgumentType]
    assert (config.loss, config.constant, config.decay) == ("rms", 0, "linear")
    assert (config.optimiser, config.rate, config.ema, config.minutes) == ("muon", 1e-3, 0.999, 150)


@pytest.mark.parametrize(
    "tokens",
    [("--recipe", "paper"), ("--recipe", "lte"), ("--minutes", "2.5"), ("--steps", "3", "--init", "a.safetensors")],
)
def test_a_config_equals_itself_after_json(tokens: tuple[str, ...]):
    config = parse(*tokens, "--validation", "DIV2K/valid")
    assert from_json(to_json(config)) == config


def test_a_config_of_another_version_is_read():
    """An older file lacks a field, a newer one has one more."""
    config = parse("--steps", "3")
    raw: dict[str, Any] = json.loads(to_json(config)) | {"unknown_setting": "value"}
    del raw["workers"], raw["betas"], raw["validation"]
    assert from_json(json.dumps(raw)) == config


def test_the_settings_of_photo_are_flags():
    config = parse("--steps", "1", "--degradation", "photo", "--jpeg-min", "40", "--noise", "0")
    settings = sample_config(config, config.stage_at(0)).photo
    assert settings == PhotoSettings(jpeg_min=40, noise=0)
    assert sample_config(parse("--steps", "1"), config.stage_at(0)).photo == PhotoSettings()
    assert {entry.name for entry in fields(PhotoSettings)} == set(PHOTO_SETTINGS)
    with pytest.raises(SRNOError, match="--blur 2 has no effect without --degradation photo"):
        parse("--steps", "1", "--blur", "2")
