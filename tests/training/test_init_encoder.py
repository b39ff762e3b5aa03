"""A decoder with fresh weights on the encoder of a checkpoint."""

from pathlib import Path

import pytest
import torch
from small_runs import make_pictures, small_config, train_here

import srno
from srno.checkpoints.native import read_native
from srno.errors import SRNOError


@pytest.fixture
def liif(tmp_path: Path) -> Path:
    """Weights of another system with the encoder of the preset light."""
    torch.manual_seed(7)
    path = tmp_path / "liif.safetensors"
    srno.save(srno.create_model("liif/light"), path)
    return path


def encoder_of(path: Path) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in read_native(path).state.items() if name.startswith("encoder.")}


def test_a_fixed_encoder_is_unchanged_and_the_decoder_is_trained(tmp_path: Path, liif: Path):
    data = make_pictures(tmp_path / "pictures")
    config = small_config(data, init_encoder=liif, fixed_encoder=True, steps=3, ema=None)
    train_here(config, tmp_path / "run")
    trained = tmp_path / "run" / "last.safetensors"
    for name, tensor in encoder_of(trained).items():
        assert torch.equal(tensor, encoder_of(liif)[name]), name
    torch.manual_seed(config.seed)
    fresh = srno.create_model("light").state_dict()
    state = read_native(trained).state
    assert all(not torch.equal(state[name], fresh[name]) for name in ("lifting.linear.weight", "projection.rgb.weight"))


def test_an_encoder_that_is_not_fixed_is_trained_from_the_given_weights(tmp_path: Path, liif: Path):
    data = make_pictures(tmp_path / "pictures")
    train_here(small_config(data, init_encoder=liif, steps=3, ema=None, rate=1e-4), tmp_path / "run")
    trained, before = encoder_of(tmp_path / "run" / "last.safetensors"), encoder_of(liif)
    moved = [float((trained[name] - before[name]).abs().max()) for name in before]
    assert 0 < max(moved) < 0.05


def test_an_encoder_of_another_size_is_refused(tmp_path: Path):
    path = tmp_path / "larger.safetensors"
    srno.save(srno.create_model("edsr/x2"), path)
    config = small_config(make_pictures(tmp_path / "pictures"), init_encoder=path, steps=1)
    with pytest.raises(SRNOError, match=r"channels=64.*the preset's is.*channels=48"):
        train_here(config, tmp_path / "run")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"fixed_encoder": True}, "--fixed-encoder would train on random features"),
        ({"init": Path("light"), "init_encoder": Path("light")}, "leave out --init-encoder"),
        ({"init": Path("light"), "fixed_encoder": True, "revive": True}, "--revive restarts units of the encoder"),
    ],
)
def test_contradictory_flags_are_refused(tmp_path: Path, flags: dict[str, object], message: str):
    with pytest.raises(SRNOError, match=message):
        small_config(tmp_path, steps=1, **flags)
