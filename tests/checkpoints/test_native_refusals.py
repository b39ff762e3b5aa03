"""Files that are safetensors, but not quite ours: each is refused in one line that names what is wrong."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from small_models import CONFIGS, random_model
from srno.checkpoints.catalogue import read_checkpoint
from srno.checkpoints.native import read_about
from srno.config import config_to_dict
from srno.errors import SRNOError

STATE = random_model(CONFIGS["edsr"], dtype=torch.float32).state_dict()


def refusal_of(path: Path) -> str:
    with pytest.raises(SRNOError) as refusal:
        read_checkpoint(path)
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def about(**changes: Any) -> dict[str, str]:
    """The metadata of a good file, with entries of its config changed."""
    data = {"config": config_to_dict(CONFIGS["edsr"]) | changes, "card": {"name": "test"}}
    return {"srno": json.dumps(data)}


def write_raw(path: Path, *, state: dict[str, Tensor] | None = None, metadata: dict[str, str] | None = None) -> Path:
    """A safetensors file by its own library, whatever is in it."""
    save_file(state or STATE, path, metadata=metadata)
    return path


def test_raw_files_are_good_unless_changed(tmp_path: Path) -> None:
    assert read_checkpoint(write_raw(tmp_path / "model.safetensors", metadata=about())).config == CONFIGS["edsr"]


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}], ids=str)
def test_without_our_metadata(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    message = refusal_of(write_raw(tmp_path / "model.safetensors", metadata=metadata))
    assert "not one of srno's" in message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "no JSON",
        "null",
        "3",
        "[]",
        "[[]]",
        '"text"',
        "{}",
        '{"config": {}}',
        '{"card": {"name": "x"}}',
        '{"config": {}, "card": {}}',
        '{"config": [], "card": {"name": "x"}}',
        '{"config": 3, "card": {"name": "x"}}',
        '{"config": {"encoder": "edsr"}, "card": {"name": "x"}}',
        '{"config": {"encoder": [[1, 2, 3]]}, "card": {"name": "x"}}',
        '{"config": {"encoder": {"family": []}}, "card": {"name": "x"}}',
        '{"config": {"encoder": {"family": "edsr"}, "system": {}}, "card": {"name": "x"}}',
        '{"config": "ab", "card": {"name": "x"}}',
        "[" * 100_000,
        '{"config": {"system": "srno", "encoder": {"family": "edsr"}, "d_z": 1e999}, "card": {"name": "x"}}',
    ],
    ids=lambda text: text[:50],
)
def test_broken_metadata(text: str, tmp_path: Path) -> None:
    refusal_of(write_raw(tmp_path / "model.safetensors", metadata={"srno": text}))
    with pytest.raises(SRNOError):
        read_about(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"system": "gan"}, "unknown system 'gan'"),
        ({"encoder": {"family": "swin"}}, "unknown encoder family 'swin'"),
        ({"patience": 3}, "patience"),
        ({"two\nlines": 3}, "two lines"),
        ({"heads": 5}, "5 heads"),
        ({"iterations": -1}, "iterations is -1"),
        ({"lifting": "cubic"}, "lifting is 'cubic'"),
    ],
    ids=str,
)
def test_config_that_makes_no_model(changes: dict[str, Any], named: str, tmp_path: Path) -> None:
    assert named in refusal_of(write_raw(tmp_path / "model.safetensors", metadata=about(**changes)))


def test_config_of_another_size(tmp_path: Path) -> None:
    for changes in ({"d_z": 24}, {"heads": 6}, {"iterations": 1}, {"iterations": 3}, {"projection_width": 8}):
        message = refusal_of(write_raw(tmp_path / "model.safetensors", metadata=about(**changes)))
        assert "tensor" in message


def test_enormous_config_is_refused_without_allocating(tmp_path: Path) -> None:
    refusal_of(write_raw(tmp_path / "model.safetensors", metadata=about(d_z=3 * 10**6)))


@pytest.mark.parametrize("name", ["encoder.head.weight", "layers.1.key_norm.bias", "projection.rgb.bias"])
def test_missing_and_misshapen_tensors(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    without = {key: tensor for key, tensor in STATE.items() if key != name}
    assert f"tensor {name} is missing" in refusal_of(write_raw(path, state=without, metadata=about()))
    longer = STATE | {name: torch.cat([STATE[name], STATE[name][:1]])}
    assert f"tensor {name} has shape" in refusal_of(write_raw(path, state=longer, metadata=about()))
    whole = STATE | {name: STATE[name].to(torch.int32)}
    assert f"tensor {name} holds torch.int32" in refusal_of(write_raw(path, state=whole, metadata=about()))


@pytest.mark.parametrize("name", ["extra", "encoder.mean", "two\nlines"])
def test_unknown_tensor(name: str, tmp_path: Path) -> None:
    state = STATE | {name: torch.zeros(2)}
    assert "unknown tensor" in refusal_of(write_raw(tmp_path / "model.safetensors", state=state, metadata=about()))


def test_eight_bit_floats(tmp_path: Path) -> None:
    """They read as floating point and cannot be computed with: either way, no traceback."""
    state = {name: tensor.to(torch.float8_e4m3fn) for name, tensor in STATE.items()}
    write_raw(tmp_path / "model.safetensors", state=state, metadata=about())
    assert "float8" in refusal_of(tmp_path / "model.safetensors")


@pytest.mark.parametrize("header", [b"{", b"{}", b"{]", b'{"a":3}', b"{" * 64], ids=repr)
def test_broken_headers(header: bytes, tmp_path: Path) -> None:
    for length in (0, len(header), len(header) + 9, 2**40):
        (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", length) + header)
        refusal_of(tmp_path / "model.safetensors")
