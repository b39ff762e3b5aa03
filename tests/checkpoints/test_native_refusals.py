"""Invalid safetensors files: each is refused with one line that names the problem."""

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refusal_of
from safetensors.torch import save_file
from torch import Tensor

from small_models import CONFIGS, random_model
from srno.checkpoints.catalogue import read_checkpoint
from srno.checkpoints.native import read_metadata
from srno.config import config_to_dict
from srno.errors import SRNOError

STATE = random_model(CONFIGS["edsr"], dtype=torch.float32).state_dict()


def our_metadata(**changes: Any) -> dict[str, str]:
    """The metadata of a valid file, with entries of its config changed."""
    data = {"config": config_to_dict(CONFIGS["edsr"]) | changes, "card": {"name": "test"}}
    return {"srno": json.dumps(data)}


def write_raw(path: Path, *, state: dict[str, Tensor] | None = None, metadata: dict[str, str] | None = None) -> Path:
    """Write a safetensors file directly with the safetensors library."""
    save_file(state or STATE, path, metadata=metadata)
    return path


def test_an_unchanged_raw_file_is_read(tmp_path: Path) -> None:
    assert read_checkpoint(write_raw(tmp_path / "model.safetensors", metadata=our_metadata())).config == CONFIGS["edsr"]


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}], ids=str)
def test_a_file_without_our_metadata_is_refused(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    message = refusal_of(write_raw(tmp_path / "model.safetensors", metadata=metadata))
    assert "that srno did not write" in message


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
def test_broken_metadata_is_refused(text: str, tmp_path: Path) -> None:
    refusal_of(write_raw(tmp_path / "model.safetensors", metadata={"srno": text}))
    with pytest.raises(SRNOError):
        read_metadata(tmp_path / "model.safetensors")


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
def test_an_invalid_config_is_refused(changes: dict[str, Any], named: str, tmp_path: Path) -> None:
    assert named in refusal_of(write_raw(tmp_path / "model.safetensors", metadata=our_metadata(**changes)))


def test_a_config_of_another_size_is_refused(tmp_path: Path) -> None:
    for changes in ({"d_z": 24}, {"heads": 6}, {"iterations": 1}, {"iterations": 3}, {"projection_width": 8}):
        message = refusal_of(write_raw(tmp_path / "model.safetensors", metadata=our_metadata(**changes)))
        assert "tensor" in message


READ_WITHIN_A_LIMIT = """
import resource, sys, torch
from pathlib import Path
from srno.checkpoints.catalogue import read_checkpoint
from srno.errors import SRNOError

pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 2**28
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    torch.empty(2**27)
except RuntimeError:
    pass
else:
    sys.exit("512 MB could be allocated: the limit of 256 MB has no effect")
try:
    read_checkpoint(Path(sys.argv[1]))
except SRNOError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit on address space is Linux's")
@pytest.mark.parametrize("d_z", [12_000, 3 * 10**6])
def test_an_enormous_config_is_refused_without_allocating(d_z: int, tmp_path: Path) -> None:
    """One layer of it would take 1.7 GB or 108 TB; the process may take 256 MB."""
    path = write_raw(tmp_path / "model.safetensors", metadata=our_metadata(d_z=d_z))
    command = [sys.executable, "-c", READ_WITHIN_A_LIMIT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: tensor")


@pytest.mark.parametrize("name", ["encoder.head.weight", "layers.1.key_norm.bias", "projection.rgb.bias"])
def test_missing_and_misshapen_tensors_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    without = {key: tensor for key, tensor in STATE.items() if key != name}
    assert f"tensor {name} is missing" in refusal_of(write_raw(path, state=without, metadata=our_metadata()))
    longer = STATE | {name: torch.cat([STATE[name], STATE[name][:1]])}
    assert f"tensor {name} has shape" in refusal_of(write_raw(path, state=longer, metadata=our_metadata()))
    whole = STATE | {name: STATE[name].to(torch.int32)}
    assert f"tensor {name} holds torch.int32" in refusal_of(write_raw(path, state=whole, metadata=our_metadata()))


@pytest.mark.parametrize("name", ["extra", "encoder.mean", "two\nlines"])
def test_an_unknown_tensor_is_refused(name: str, tmp_path: Path) -> None:
    state = STATE | {name: torch.zeros(2)}
    assert "unknown tensor" in refusal_of(
        write_raw(tmp_path / "model.safetensors", state=state, metadata=our_metadata())
    )


def test_eight_bit_floats_are_refused(tmp_path: Path) -> None:
    """They are floating point, but torch cannot compute with them."""
    state = {name: tensor.to(torch.float8_e4m3fn) for name, tensor in STATE.items()}
    write_raw(tmp_path / "model.safetensors", state=state, metadata=our_metadata())
    assert "float8" in refusal_of(tmp_path / "model.safetensors")


@pytest.mark.parametrize("header", [b"{", b"{}", b"{]", b'{"a":3}', b"{" * 64], ids=repr)
def test_broken_headers_are_refused(header: bytes, tmp_path: Path) -> None:
    for length in (0, len(header), len(header) + 9, 2**40):
        (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", length) + header)
        refusal_of(tmp_path / "model.safetensors")
