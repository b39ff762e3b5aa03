"""Our file format: loading gives the saved tensors, and writing them again the same bytes."""

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from small_models import CONFIGS, grid_queries, random_image, random_model
from srno.checkpoints.build import create_model
from srno.checkpoints.catalogue import load, read_checkpoint
from srno.checkpoints.native import Card, Checkpoint, read_metadata, write_checkpoint
from srno.config import PRESETS, ModelConfig, RDNConfig
from srno.errors import SRNOError

CARD = Card(
    name="test",
    licence="MIT",
    data="made up, 3 pictures",
    recipe="srno train …\non one machine",
    results={"Set5": {"×2": 38.15, "protocol": "benchmark"}},
)


def affordable(name: str, config: ModelConfig) -> ModelConfig:
    """RDN is 90 MB: it is tested in full once, and with fewer blocks for the other decoders."""
    if isinstance(config.encoder, RDNConfig) and name != "rdn":
        return replace(config, encoder=replace(config.encoder, blocks=2, layers=2))
    return config


@pytest.mark.parametrize(("name", "config"), PRESETS.items(), ids=PRESETS.keys())
def test_saving_a_loaded_model_gives_the_same_file(name: str, config: ModelConfig, tmp_path: Path) -> None:
    """Equal tensors, equal pictures, and the same bytes when written again."""
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    model = create_model(affordable(name, config)).eval()
    write_checkpoint(Checkpoint(config=model.config, state=model.state_dict(), card=CARD), first)
    checkpoint = read_checkpoint(first)
    assert checkpoint.config == model.config
    assert checkpoint.card == CARD
    loaded = checkpoint.model()
    assert loaded.state_dict().keys() == model.state_dict().keys()
    for key, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], tensor)
    image, queries = random_image(3, 2).float(), grid_queries((3, 2), (6, 4))
    with torch.no_grad():
        assert torch.equal(loaded.reference(image, *queries), model.reference(image, *queries))
    write_checkpoint(Checkpoint(config=loaded.config, state=loaded.state_dict(), card=checkpoint.card), second)
    assert first.read_bytes() == second.read_bytes()
    first.unlink()
    second.unlink()


def test_equal_checkpoints_give_equal_files(tmp_path: Path) -> None:
    """The order of tensors and results does not change the file."""
    card = Card(name="x", results={"Set5": {"×2": 38.0, "×3": 34.0}, "B100": {}})
    reordered = Card(name="x", results={"B100": {}, "Set5": {"×3": 34.0, "×2": 38.0}})
    checkpoint = replace(small_checkpoint(), card=card)
    backwards = replace(checkpoint, state=dict(reversed(checkpoint.state.items())), card=reordered)
    write_checkpoint(checkpoint, tmp_path / "one.safetensors")
    write_checkpoint(backwards, tmp_path / "two.safetensors")
    assert (tmp_path / "one.safetensors").read_bytes() == (tmp_path / "two.safetensors").read_bytes()


def small_checkpoint(dtype: torch.dtype = torch.float32) -> Checkpoint:
    model = random_model(CONFIGS["edsr"], dtype=dtype)
    return Checkpoint(config=model.config, state=model.state_dict(), card=CARD)


@pytest.mark.parametrize(
    ("stored", "loaded"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
    ids=str,
)
def test_models_compute_in_single_precision_or_better(stored: torch.dtype, loaded: torch.dtype, tmp_path: Path) -> None:
    checkpoint = small_checkpoint(stored)
    write_checkpoint(checkpoint, tmp_path / "model.safetensors")
    model = load(tmp_path / "model.safetensors")
    assert not model.training
    for name, tensor in model.state_dict().items():
        assert tensor.dtype == loaded
        assert torch.equal(tensor, checkpoint.state[name].to(loaded))


def test_loaded_models_can_be_trained_further(tmp_path: Path) -> None:
    write_checkpoint(small_checkpoint(), tmp_path / "model.safetensors")
    model = load(tmp_path / "model.safetensors")
    model(random_image(3, 3).float(), *grid_queries((3, 3), (5, 5))).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(), min_size=4, max_size=4),
    results=st.dictionaries(st.text(), st.dictionaries(st.text(), st.floats(allow_nan=False))),
)
def test_cards_may_contain_any_text(tmp_path: Path, texts: list[str], results: dict[str, Any]) -> None:
    name, licence, data, recipe = texts
    card = Card(name=name, licence=licence, data=data, recipe=recipe, results=results)
    write_checkpoint(replace(small_checkpoint(), card=card), tmp_path / "model.safetensors")
    assert read_checkpoint(tmp_path / "model.safetensors").card == card
    assert read_metadata(tmp_path / "model.safetensors") == (CONFIGS["edsr"], card)


def test_shipped_models_are_found_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found by name and as `default`, and listed with the default first."""
    from srno.checkpoints import catalogue

    monkeypatch.setattr(catalogue, "_weights_folder", lambda: tmp_path)
    for name in ("another", "light"):
        write_checkpoint(replace(small_checkpoint(), card=Card(name=name)), tmp_path / f"{name}.safetensors")
    assert catalogue.list_models() == ["light", "another"]
    shipped = catalogue.shipped_models()
    assert [model.card.name for model in shipped] == ["light", "another"]
    assert shipped[0].parameters == sum(tensor.numel() for tensor in small_checkpoint().state.values())
    assert catalogue.find("default") == tmp_path / "light.safetensors"
    assert catalogue.load("another").config == CONFIGS["edsr"]
    with pytest.raises(SRNOError, match=r"no model 'anothr'.*another"):
        catalogue.load("anothr")
    with pytest.raises(SRNOError, match="no model"):
        catalogue.load("../light")


def test_tensors_that_do_not_fit_the_config_are_not_written(tmp_path: Path) -> None:
    checkpoint = small_checkpoint()
    wrong = replace(checkpoint, config=replace(CONFIGS["edsr"], iterations=1))
    with pytest.raises(SRNOError, match="unknown tensor layers"):
        write_checkpoint(wrong, tmp_path / "new" / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_writing_replaces_the_file_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "model.safetensors"
    write_checkpoint(small_checkpoint(), path)
    write_checkpoint(replace(small_checkpoint(), card=Card(name="second")), path)
    assert read_checkpoint(path).card.name == "second"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    """The target is a folder, so that the final rename fails; or its parent is a file."""
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_text("in the way")
    for target in (folder, file / "model.safetensors"):
        with pytest.raises(SRNOError, match=f"{target}: cannot be written"):
            write_checkpoint(small_checkpoint(), target)
    assert sorted(tmp_path.iterdir()) == [file, folder]
    assert file.read_text() == "in the way"


def test_configs_are_stored_in_full(tmp_path: Path) -> None:
    """A file stays readable if a later version changes the defaults."""
    write_checkpoint(small_checkpoint(), tmp_path / "model.safetensors")
    content = (tmp_path / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    stored = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["srno"])["config"]
    expected = {"system", "encoder", "lifting", "d_z", "heads", "iterations", "projection_width"}
    assert stored.keys() == expected
    assert stored["encoder"] == {"family": "edsr", "channels": 5, "blocks": 2}
