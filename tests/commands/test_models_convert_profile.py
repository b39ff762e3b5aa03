"""srno models, convert and profile, as a user types them."""

import json
import pickle
from pathlib import Path

import pytest
import torch

import srno
from checkpoints.public_layout import public_content, write_public
from command_runs import run
from small_models import CONFIGS, random_model
from srno.checkpoints.catalogue import load

WEIGHTS = Path(srno.__file__).parent / "weights"


@pytest.mark.parametrize(
    ("preset", "parameters", "flops"), [("edsr-baseline", 2_015_299, 65.8), ("rdn", 22_768_835, 745.6)]
)
def test_profile_equals_the_papers_numbers(
    capsys: pytest.CaptureFixture[str], preset: str, parameters: int, flops: float
):
    code, out, _ = run(capsys, "profile", preset, "--json")
    counted = json.loads(out)
    assert code == 0
    assert counted["parameters"] == parameters
    assert round(counted["flops_paper"] / 1e9, 1) == flops
    assert counted["flops"] > counted["flops_paper"]
    assert list(counted["parts"]) == ["encoder", "lifting", "layers.0", "layers.1", "projection"]
    for key in ("parameters", "flops", "flops_paper"):
        assert sum(part[key] for part in counted["parts"].values()) == counted[key]


def test_profile_scales_with_both_sizes(capsys: pytest.CaptureFixture[str]):
    _, small, _ = run(capsys, "profile", "light", "--json", "--input", "64x32", "--output", "100x50")
    _, large, _ = run(capsys, "profile", "light", "--json", "--input", "128x32", "--output", "200x50")
    small, large = json.loads(small), json.loads(large)
    assert small["input"] == [64, 32]
    assert large["flops"] == 2 * small["flops"]


def test_profile_table_has_every_part(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "profile", "light")
    assert code == 0
    assert all(word in out for word in ("encoder", "lifting", "layers.1", "projection", "557,091"))


@pytest.mark.parametrize(
    "tokens", [("profile", "no-such"), ("profile", "light", "--input", "12"), ("profile", "light", "--x")]
)
def test_wrong_use_is_a_one_line_error(capsys: pytest.CaptureFixture[str], tokens: tuple[str, ...]):
    code, out, err = run(capsys, *tokens)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_a_converted_checkpoint_loads_with_the_same_weights(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    model = random_model(next(iter(CONFIGS.values())), seed=1, dtype=torch.float32)
    write_public(public_content(model), tmp_path / "public.pth")
    code, out, err = run(capsys, "convert", tmp_path / "public.pth", tmp_path / "ours.safetensors")
    assert code == 0, err
    assert "parameters" in out
    loaded = load(tmp_path / "ours.safetensors").state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in model.state_dict().items())
    assert run(capsys, "convert", tmp_path / "public.pth", tmp_path / "ours.safetensors")[0] == 2


class MaliciousPickle:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


@pytest.mark.parametrize("kind", ["malicious", "truncated", "text", "missing"])
def test_convert_refuses_bad_files_and_writes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str):
    source, target = tmp_path / "public.pth", tmp_path / "ours.safetensors"
    content = public_content(random_model(next(iter(CONFIGS.values())), seed=1, dtype=torch.float32))
    if kind == "malicious":
        source.write_bytes(pickle.dumps({"model": MaliciousPickle(tmp_path / "marker")}))
    elif kind == "truncated":
        write_public(content, source)
        source.write_bytes(source.read_bytes()[:-1000])
    elif kind == "text":
        source.write_text("not a checkpoint")
    code, out, err = run(capsys, "convert", source, target)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert not (tmp_path / "marker").exists()
    assert not target.exists()
    assert not list(tmp_path.glob(".*"))


def test_models_lists_what_is_shipped(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "models", "--json")
    rows = json.loads(out)
    assert code == 0
    assert {row["name"] for row in rows} == {path.stem for path in WEIGHTS.glob("*.safetensors")}
    assert [row["name"] for row in rows if row["default"]] == ["light"]
    for row in rows:
        assert row["parameters"] == sum(p.numel() for p in load(row["name"]).parameters())
        assert row["card"]["licence"] != "unknown"
    assert run(capsys, "models")[0] == 0


def test_models_fits_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(capsys, "models")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "×8" in out  # a column for each scale, none cut off
    lines = out.splitlines()
    tables = [[lines[at], lines[at + 2]] for at, line in enumerate(lines) if line.startswith("┃")]
    assert len(tables) == len(list(WEIGHTS.glob("*.safetensors")))
    assert all(head.count("┃") == row.count("│") for head, row in tables)
