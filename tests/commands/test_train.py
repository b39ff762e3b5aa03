"""srno train, as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_runs import exit_code, run
from srno.checkpoints.catalogue import load
from srno.config import PRESETS
from srno.training.run import Run
from training.small_runs import SMALL, make_pictures

TWO_STEPS = (*SMALL, "--steps", "2")
SYSTEMS = (
    "light-i",
    "light-h",
    "light-w",
    "light-l",
    "edsr-baseline",
    *(f"{name}/light" for name in ("liif", "lte", "metasr", "mlp")),
    "edsr/x2",
    "edsr/x4",
)
FIXED_SCALES = {f"{family}/x{scale}": scale for family in ("edsr", "rdn") for scale in (2, 3, 4)}


@pytest.fixture(autouse=True)
def temporary_picture_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pictures(tmp_path_factory.mktemp("train") / "pictures")


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished run of the default preset."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
        assert exit_code("train", "--data", data, "--out", folder, *TWO_STEPS) == 0
    return folder


def train(capsys: pytest.CaptureFixture[str], *tokens: str | Path) -> tuple[int, str, str]:
    """`srno train TOKENS`: exit code, stdout, stderr."""
    return run(capsys, "train", *tokens)


def test_preset_data_out_and_minutes_are_enough(capsys: pytest.CaptureFixture[str], data: Path, tmp_path: Path):
    """All other flags have defaults; those given here only keep the run short."""
    size = ("--stages", "8x2x16", "--hold-out", "1", "--validation-pixels", "2500")
    code, out, err = train(
        capsys, "--preset", "light", "--data", data, "--out", tmp_path / "run", "--minutes", "0.02", *size
    )
    assert (code, out) == (0, ""), err
    assert "done after" in err
    for name in ("last.safetensors", "best.safetensors", "state", "log.jsonl", "config.json", "crops"):
        assert (tmp_path / "run" / name).exists()
    config = Run(tmp_path / "run").config()
    assert config.precision in ("fp32", "bf16")
    assert config.data == (data.resolve(),)
    load(tmp_path / "run" / "best.safetensors")


@pytest.mark.parametrize("preset", SYSTEMS)
def test_every_system_trains(capsys: pytest.CaptureFixture[str], data: Path, tmp_path: Path, preset: str):
    scale = FIXED_SCALES.get(preset)
    scales = ("--r-min", str(scale), "--r-max", str(scale)) if scale else ()
    code, _, err = train(capsys, "--preset", preset, "--data", data, "--out", tmp_path / "run", *TWO_STEPS, *scales)
    assert code == 0, err
    steps = [entry for entry in Run(tmp_path / "run").read_log() if entry["event"] == "step"]
    assert [step["step"] for step in steps] == [1, 2]
    assert load(tmp_path / "run" / "last.safetensors").config == PRESETS[preset]


def test_a_fixed_scale_network_needs_its_scale_as_flags(capsys: pytest.CaptureFixture[str], data: Path, tmp_path: Path):
    code, _, err = train(capsys, "--preset", "edsr/x3", "--data", data, "--out", tmp_path / "run", *TWO_STEPS)
    assert (code, err.count("\n")) == (2, 1)  # before any picture is read
    assert "--r-min 3 --r-max 3" in err


def test_data_takes_several_folders(capsys: pytest.CaptureFixture[str], data: Path, tmp_path: Path):
    more = make_pictures(tmp_path / "more", 1)
    code, _, err = train(capsys, "--data", data, more, "--out", tmp_path / "run", *TWO_STEPS)
    assert code == 0, err
    assert Run(tmp_path / "run").config().data == (data.resolve(), more.resolve())


def test_init_grows_a_smaller_model(capsys: pytest.CaptureFixture[str], data: Path, trained: Path, tmp_path: Path):
    flags = ("--preset", "edsr-baseline", "--init", trained / "best.safetensors", "--data", data, *TWO_STEPS)
    code, _, err = train(capsys, *flags, "--out", tmp_path / "run")
    assert code == 0, err
    code, _, err = train(capsys, *flags[:1], "liif/light", *flags[2:], "--out", tmp_path / "other")
    assert code == 2
    assert "--init: system and encoder cannot go from srno/edsr to liif/edsr" in err
    assert not (tmp_path / "other").exists()


def test_a_run_resumes_with_a_larger_budget(capsys: pytest.CaptureFixture[str], trained: Path):
    code, _, err = train(capsys, "--resume", trained, "--steps", "3", "--device", "cpu", "--threads", "1")
    assert code == 0, err
    assert "resuming at step 2" in err
    assert "done after 3 steps" in err
    assert Run(trained).config().steps == 3
    code, _, err = train(capsys, "--resume", trained, "--device", "cpu", "--threads", "1")
    assert code == 0, err  # nothing left to do
    assert "is done already; give a larger budget to extend it" in err


def test_a_resumed_config_is_identical(capsys: pytest.CaptureFixture[str], data: Path, tmp_path: Path):
    """Fractions and None are preserved by config.json and by the flags."""
    flags = ("--recipe", "paper", "--stages", "8x2x16", "--accumulate", "2", "--steps", "1", "--device", "cpu")
    assert train(capsys, "--data", data, "--out", tmp_path / "run", *flags)[0] == 0
    before = Run(tmp_path / "run").config()
    assert (before.clip, before.ema, before.warmup) == (None, None, 50 / 1050)
    assert train(capsys, "--resume", tmp_path / "run", "--device", "cpu")[0] == 0
    assert Run(tmp_path / "run").config() == before


def test_plot_writes_curves(capsys: pytest.CaptureFixture[str], trained: Path):
    code, out, _ = train(capsys, "--plot", trained)
    assert (code, out) == (0, f"{trained / 'curves.png'}\n")
    assert (trained / "curves.png").stat().st_size > 10_000


def test_tensorboard_writes_events(capsys: pytest.CaptureFixture[str], data: Path, tmp_path: Path):
    pytest.importorskip("tensorboard")
    code, _, err = train(capsys, "--data", data, "--out", tmp_path / "run", *TWO_STEPS, "--tensorboard")
    assert code == 0, err
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))


@pytest.mark.parametrize(
    ("tokens", "named"),
    [
        ((), "--data"),
        (("--data", "DATA", "--steps", "1"), "--out"),
        (("--data", "DATA", "--out", "NEW"), "--steps, --epochs or --minutes"),
        (("--data", "DATA", "--out", "NEW", "--steps", "1", "--minutes", "1"), "one budget"),
        (("--data", "nowhere", "--out", "NEW", "--steps", "1"), "nowhere is not a folder"),
        (("--data", "DATA", "--out", "NEW", "--steps", "1", "--preset", "huge"), "unknown preset 'huge'"),
        (("--data", "DATA", "--out", "NEW", "--steps", "1", "--recipe", "best"), "--recipe 'best'"),
        (("--data", "DATA", "--out", "NEW", "--steps", "1", "--device", "abacus"), "--device abacus"),
        (("--data", "DATA", "--out", "NEW", "--steps", "1", "--threads", "0"), "--threads 0"),
        (("--data", "DATA", "--out", "NEW", "--steps", "1", "--init", "no.safetensors"), "no.safetensors"),
        (("--data", "DATA", "--out", "NEW", "--steps", "1", "--validation", "nowhere"), "--validation"),
        (("--data", "DATA", "--out", "NEW", "--steps", "1", "--stages", "600x2x16"), "or give --allow-small"),
        (("--data", "DATA", "--out", "RUN", "--steps", "1"), "holds a run already"),
        (("--data", "DATA", "--out", "FILE", "--steps", "1"), "a file is a file; give a folder"),
        (("--resume", "RUN", "--steps", "1"), "--steps 1 is used up already: the run is at step"),
        (("--resume", "NEW"), "no run there"),
        (("--resume", "RUN", "--rate", "1"), "--rate cannot change"),
        (("--resume", "RUN", "--out", "NEW"), "--out cannot change"),
        (("--resume", "RUN", "--steps", "9", "--minutes", "1"), "one budget"),
        (("--plot", "NEW"), "no log.jsonl"),
    ],
)
def test_wrong_use_is_a_one_line_error_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], data: Path, trained: Path, tmp_path: Path, tokens: tuple[str, ...], named: str
):
    places = {"DATA": data, "RUN": trained, "NEW": tmp_path / "new", "FILE": tmp_path / "a file"}
    places["FILE"].touch()
    code, out, err = train(capsys, *(places.get(token, token) for token in tokens))
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("srno: ")
    assert named in err.splitlines()[-1]
    assert [line for line in err.splitlines()[:-1] if "reading 4 pictures" not in line] == []
    assert not (tmp_path / "new").exists()


def test_help_needs_no_torch():
    code = "import sys; from srno.commands.train import train; train.help_print([]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert "--checkpoint-minutes" in done.stdout


def test_a_log_line_has_the_documented_keys(data: Path, tmp_path: Path):
    """Runs `python -m srno train` in a separate process."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "srno", "train", "--data", data, "--out", tmp_path / "run", *TWO_STEPS],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    line = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[0])
    assert line.keys() == {"event", "step", "sample", "loss", "norm", "rate", "progress", "pixels", "seconds"}
    assert line["seconds"] > 0
