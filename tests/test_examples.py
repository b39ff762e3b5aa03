"""The scripts in examples/ and the entry points of hubconf.py, on a small picture and for a few steps."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import srno
from training.small_runs import make_pictures

ROOT = Path(__file__).parents[1]


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def test_the_field_as_a_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Zoom, gradient and warp have the size that the script states, and contents that differ."""
    with Image.open(Path(srno.__file__).parent / "examples" / "cat.png") as cat:
        cat.convert("RGB").resize((24, 20)).save(tmp_path / "small.png")
    given = script("field_as_a_function")
    given["main"]([str(tmp_path / "small.png"), str(tmp_path)])
    side = given["SIDE"]
    drawn = {name: Image.open(tmp_path / f"{name}.png") for name in ("zoom", "gradient", "warp")}
    assert all(picture.size == (side, side) for picture in drawn.values())
    assert len({picture.tobytes() for picture in drawn.values()}) == 3
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()[1:]] == [
        "zoom.png",
        "gradient.png",
        "warp.png",
    ]


def test_training_in_five_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """For two seconds: it validates, and enlarges a picture by 3 with the weights of the run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data, run = make_pictures(tmp_path / "data", 6, (96, 100)), tmp_path / "run"
    given = script("train_in_five_minutes")
    given["main"]([str(data), str(run), "0.03"])
    assert (run / "best.safetensors").is_file()
    with Image.open(given["PICTURE"]) as small, Image.open(run / "coffee_3x.png") as large:
        assert large.size == (3 * small.width, 3 * small.height)
    assert " dB after " in capsys.readouterr().out


def test_torch_hub_gives_shipped_and_fresh_models():
    shipped = torch.hub.load(str(ROOT), "srno", "light", source="local")
    fresh = torch.hub.load(str(ROOT), "srno_preset", "light", source="local")
    assert type(shipped) is type(fresh) is srno.SRNO
    weight = srno.load("light").get_parameter("projection.rgb.weight")
    assert torch.equal(shipped.projection.rgb.weight, weight)
    assert not torch.equal(fresh.projection.rgb.weight, weight)


def test_torch_hub_lists_nothing_else():
    hub = runpy.run_path(str(ROOT / "hubconf.py"))
    assert {name for name, entry in hub.items() if callable(entry) and name[0] != "_"} == {"srno", "srno_preset"}
