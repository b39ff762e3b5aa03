"""srno export as a user types it, and the client beside srno upscale."""

import errno
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx
import pytest
import torch
from PIL import Image

from command_runs import run
from commands.scoring import write_model
from export.exported import open_session, run_whole, tame_model
from srno.config import SRNOConfig
from srno.errors import SRNOError
from srno.export.export import save_onnx
from srno.export.graph import IR_VERSION, OPSET
from srno.files import replacing
from srno.operator.model import Model
from srno.operator.srno import SRNO

CLIENT = Path(__file__).parents[2] / "examples" / "onnx_client.py"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_model(tame_model("edsr"), tmp_path / "model.safetensors")


def test_one_graph(capsys: Capture, tmp_path: Path, checkpoint: Path):
    target = tmp_path / "new" / "model.onnx"
    code, out, err = run(capsys, "export", checkpoint, target)
    assert (code, err) == (0, "")
    assert f"opset {OPSET}, IR version {IR_VERSION}" in out
    assert [path.name for path in target.parent.iterdir()] == ["model.onnx"]
    assert run_whole(open_session(onnx.load(target)), np.zeros((1, 3, 4, 5), np.float32), (9, 7)).shape == (1, 3, 9, 7)


def test_three_graphs_with_options(capsys: Capture, tmp_path: Path, checkpoint: Path):
    code, out, _ = run(
        capsys, "export", checkpoint, tmp_path / "m.onnx", "--parts", "--integral", "70", "--precision", "fp16"
    )
    assert code == 0
    assert out.count("\n") == 3
    for part in ("encoder", "integral", "render"):
        stored = {each.key: each.value for each in onnx.load(tmp_path / f"m.{part}.onnx").metadata_props}
        assert (stored["part"], stored["integral"], stored["precision"]) == (part, "70", "fp16")
    assert not (tmp_path / "m.onnx").exists()


def test_auto_is_decided_by_the_graph(capsys: Capture, tmp_path: Path, checkpoint: Path):
    assert run(capsys, "export", checkpoint, tmp_path / "m.onnx", "--integral", "auto")[0] == 0
    stored = {each.key: each.value for each in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert stored["integral"] == "auto"


@pytest.mark.parametrize("flags", [(), ("--parts",)])
def test_an_existing_file_is_replaced_only_with_overwrite(
    capsys: Capture, tmp_path: Path, checkpoint: Path, flags: tuple[str, ...]
):
    taken = tmp_path / ("m.render.onnx" if flags else "m.onnx")
    taken.write_text("mine")
    before = sorted(tmp_path.iterdir())
    code, out, err = run(capsys, "export", checkpoint, tmp_path / "m.onnx", *flags)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert str(taken) in err
    assert "--overwrite" in err
    assert (sorted(tmp_path.iterdir()), taken.read_text()) == (before, "mine")
    assert run(capsys, "export", checkpoint, tmp_path / "m.onnx", *flags, "--overwrite")[0] == 0
    onnx.checker.check_model(onnx.load(taken))


def test_a_failed_write_leaves_the_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The last of three graphs cannot be written: the others keep their old content."""
    names = ["m.encoder.onnx", "m.integral.onnx", "m.render.onnx"]
    for name in names:
        (tmp_path / name).write_text("old")

    @contextmanager
    def failing(path: Path, *, sync: bool) -> Generator[BinaryIO]:
        with replacing(path, sync=sync) as stream:
            if path.name == names[-1]:
                raise OSError(errno.ENOSPC, "No space left on device")
            yield stream

    monkeypatch.setattr("srno.export.export.replacing", failing)
    with pytest.raises(SRNOError, match="No space left"):
        save_onnx(tame_model("edsr"), tmp_path / "m.onnx", parts=True, overwrite=True)
    assert [(tmp_path / name).read_text() for name in names] == ["old"] * 3
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("no-such", "m.onnx"), "no-such"),
        (("MODEL", "m.pb"), ".onnx"),
        (("MODEL", "m.onnx", "--integral", "few"), "--integral"),
        (("MODEL", "m.onnx", "--integral", "0"), "--integral"),
        (("MODEL", "m.onnx", "--precision", "int8"), "--precision"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(
    capsys: Capture, tmp_path: Path, checkpoint: Path, tokens: tuple[str, ...], words: str
):
    named = [str(checkpoint) if token == "MODEL" else token for token in tokens]
    named[1] = str(tmp_path / named[1])
    code, out, err = run(capsys, "export", *named)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err
    assert not list(tmp_path.glob("m.*"))


class Doubled(torch.nn.Module):
    channels, radius = 3, 1

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return 2 * image


def test_a_custom_encoder_is_refused_by_name(capsys: Capture, tmp_path: Path):
    model: Model = SRNO(SRNOConfig(d_z=8, heads=2, iterations=1, projection_width=4), Doubled())
    path = write_model(model, tmp_path / "model.safetensors")
    code, _, err = run(capsys, "export", path, tmp_path / "m.onnx")
    assert code == 2
    assert "Doubled" in err
    assert err.count("\n") == 1


def test_without_the_extra_the_command_to_install_it_is_named(tmp_path: Path, checkpoint: Path):
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        f"from srno.cli import main; main(['export', {str(checkpoint)!r}, {str(tmp_path / 'm.onnx')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'srno[onnx]'" in done.stderr


@pytest.mark.parametrize("integral", ["exact", "900"])
def test_the_client_gives_the_picture_of_srno_upscale(capsys: Capture, tmp_path: Path, checkpoint: Path, integral: str):
    pixels = np.random.default_rng(3).integers(60, 190, (23, 31, 3), dtype=np.uint8)
    pixels[0, 0] = 32, 10, 9  # bytes that are blanks in a PPM header
    for name in ("in.png", "in.ppm"):
        Image.fromarray(pixels).save(tmp_path / name)
    assert run(capsys, "export", checkpoint, tmp_path / "m.onnx", "--parts", "--integral", integral)[0] == 0
    command = [sys.executable, CLIENT, tmp_path / "m", tmp_path / "in.ppm", tmp_path / "out.ppm", "2.5"]
    subprocess.run(command, check=True, timeout=120)
    flags = ("-m", checkpoint, "--integral", integral, "-o", tmp_path / "out.png")
    assert run(capsys, "upscale", tmp_path / "in.png", "-s", "2.5", *flags)[0] == 0
    ours, theirs = (np.asarray(Image.open(tmp_path / name), int) for name in ("out.ppm", "out.png"))
    assert ours.shape == theirs.shape == (58, 78, 3)
    assert np.abs(ours - theirs).max() <= 1
    assert np.mean(ours != theirs) < 0.01


def test_the_client_needs_neither_torch_nor_srno():
    code = f"""
import runpy, sys
sys.modules["torch"] = sys.modules["srno"] = None
runpy.run_path({str(CLIENT)!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert len(CLIENT.read_text().splitlines()) <= 60
