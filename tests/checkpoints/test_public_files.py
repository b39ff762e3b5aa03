"""Public checkpoints: other names for the same tensors, and refusal of invalid files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from public_layout import public_content, public_state, write_public
from refusals import refusal_of
from torch import Tensor

from parity_checkpoints import PARITY_FIXTURES
from small_models import CONFIGS, grid_queries, random_image, random_model
from srno.checkpoints.catalogue import load, read_checkpoint
from srno.checkpoints.native import write_checkpoint
from srno.config import EDSRConfig, RDNConfig, SRNOConfig
from srno.operator.grid import cell_of, make_grid
from srno.operator.srno import SRNO

PUBLIC = {
    **{name: config for name, config in CONFIGS.items() if config.lifting == "interpolation-free"},
    "published-edsr": SRNOConfig(),
    "published-widths-rdn": SRNOConfig(encoder=RDNConfig(blocks=2, layers=2), d_z=128),
    "eight-heads": SRNOConfig(encoder=EDSRConfig(channels=16, blocks=3), d_z=64, heads=8, iterations=1),
    "three-layers": SRNOConfig(encoder=EDSRConfig(channels=8, blocks=1), d_z=32, heads=2, iterations=3),
}


def small() -> SRNO:
    return random_model(CONFIGS["edsr"], dtype=torch.float32)


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("config", PUBLIC.values(), ids=PUBLIC.keys())
def test_a_public_checkpoint_loads_as_the_same_function(config: SRNOConfig, legacy: bool, tmp_path: Path) -> None:
    model = random_model(config, dtype=torch.float32)
    path = write_public(public_content(model), tmp_path / "epoch-last.pth", legacy=legacy)
    image = random_image(5, 4).float()
    queries = grid_queries((5, 4), (11, 9))
    with torch.no_grad():
        expected = model.reference(image, *queries)
        assert torch.equal(load(path).reference(image, *queries), expected)
        checkpoint = read_checkpoint(path)
        assert checkpoint.config == config
        write_checkpoint(checkpoint, tmp_path / "ours.safetensors")
        assert torch.equal(load(tmp_path / "ours.safetensors").reference(image, *queries), expected)


def test_a_half_precision_file_loads_in_single_precision(tmp_path: Path) -> None:
    model = small()
    content = public_content(model)
    content["model"]["sd"] = {name: tensor.half() for name, tensor in content["model"]["sd"].items()}
    loaded = load(write_public(content, tmp_path / "half.pth"))
    for name, tensor in loaded.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, model.state_dict()[name].half().float())


def test_parity_with_the_public_implementation(parity_folder: Path) -> None:
    """Its values on random weights, in [0, 1] units and not clamped."""
    model = load(parity_folder / "sronet.pth")
    answers = np.load(PARITY_FIXTURES / "sronet.npz")
    for i in range(3):
        picture, expected = answers[f"image{i}"], answers[f"expected{i}"]
        (h, w, _), (H, W, _) = picture.shape, expected.shape
        image = (torch.from_numpy(picture).permute(2, 0, 1).unsqueeze(0) - 0.5) / 0.5
        with torch.no_grad():
            answer = model(image, make_grid(H, W).unsqueeze(0), cell_of(H / h, W / w))[0] * 0.5 + 0.5
        assert np.abs(answer.numpy() - expected).max() < 1e-5


def rewritten(tmp_path: Path, name: str, tensor: Tensor | None) -> Path:
    """A public file with one tensor replaced or added, or removed if it is None."""
    state = public_state(small())
    if tensor is None:
        del state[name]
    else:
        state[name] = tensor
    return write_public({"model": {"name": "sronet", "sd": state}}, tmp_path / "changed.pth")


STATE = {name: tensor for name, tensor in public_state(small()).items() if "_mean" not in name}

COUNTED = ("encoder.head.0.weight", "encoder.body.0.body.0.weight", "encoder.body.1.body.0.weight", "qkv_proj.weight")
"""Without one of these the file looks like another architecture, or a smaller one with unknown tensors."""


@pytest.mark.parametrize("name", STATE)
def test_a_missing_tensor_is_refused(name: str, tmp_path: Path) -> None:
    message = refusal_of(rewritten(tmp_path, name, None))
    assert f"tensor {name} is missing" in message or name.endswith(COUNTED)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: torch.cat([tensor, tensor[:1]]),
        lambda tensor: tensor[:0],
        lambda tensor: tensor[0].clone(),
        lambda tensor: torch.tensor(1.0),
        lambda tensor: tensor.unsqueeze(0),
        lambda tensor: tensor.long(),
        lambda tensor: tensor.to(torch.complex64),
        lambda tensor: tensor.to_sparse(),
        lambda tensor: tensor.to("meta"),
    ],
    ids=["longer", "empty", "rank-lower", "scalar", "rank-higher", "integer", "complex", "sparse", "meta"],
)
def test_a_tensor_that_does_not_fit_is_refused(change: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    for name, tensor in STATE.items():
        refusal_of(rewritten(tmp_path, name, change(tensor)))


@pytest.mark.parametrize("name", ["encoder.tail.0.weight", "conv0.extra", "conv2.o_proj1.weight", "two\nlines"])
def test_an_unknown_tensor_is_refused(name: str, tmp_path: Path) -> None:
    assert "unknown tensor" in refusal_of(rewritten(tmp_path, name, torch.zeros(3)))


@pytest.mark.parametrize("name", ["swinir", "SRONet", "srno", "two\nlines", ""])
def test_an_unknown_architecture_name_is_refused(name: str, tmp_path: Path) -> None:
    content = public_content(small())
    content["model"]["name"] = name
    assert f"a checkpoint of {name!r}" in refusal_of(write_public(content, tmp_path / "other.pth"))


@pytest.mark.parametrize("name", ["edsr", "rdn", "liif", "lte", "lte-fast", "metasr"])
def test_the_name_of_another_architecture_is_refused(name: str, tmp_path: Path) -> None:
    content = public_content(small())
    content["model"]["name"] = name
    assert name in refusal_of(write_public(content, tmp_path / "other.pth"))


def test_an_unknown_encoder_is_refused(tmp_path: Path) -> None:
    content = public_content(small())
    state = content["model"]["sd"]
    content["model"]["sd"] = {name.replace("encoder.head", "encoder.patch_embed"): state[name] for name in state}
    assert "neither EDSR nor RDN" in refusal_of(write_public(content, tmp_path / "swin.pth"))


@pytest.mark.parametrize(
    "content",
    [
        None,
        3,
        [1, 2],
        torch.zeros(3),
        {},
        {"model": None},
        {"model": {"name": "sronet"}},
        {"model": {"name": "sronet", "sd": {}}},
        {"model": {"name": "sronet", "sd": {"fc1.weight": 3}}},
        {"model": {"name": "sronet", "sd": {3: torch.zeros(1)}}},
        {"model": {"name": 3, "sd": {"fc1.weight": torch.zeros(1)}}},
        {"model": {"name": "sronet", "sd": [torch.zeros(1)]}},
        {"state_dict": {"fc1.weight": torch.zeros(1)}},
    ],
    ids=str,
)
def test_other_content_is_refused(content: object, tmp_path: Path) -> None:
    assert "not a public checkpoint" in refusal_of(write_public(content, tmp_path / "other.pth"))
