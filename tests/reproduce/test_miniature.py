"""The paper's comparison at small scale: equal training for all members, resuming, and differences per seed."""

import json
import signal
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from command_runs import run
from commands.scoring import make_set
from small_models import EDSR
from srno.checkpoints.native import read_native
from srno.config import PRESETS, LIIFConfig, LTEConfig, MetaSRConfig, MLPConfig, SRNOConfig
from srno.evaluation.protocols import Scale
from srno.reproduce.miniature import Member, MemberResult, Miniature, gain, members, run_of, train_member
from srno.training.distributed import World
from srno.training.learner import Learner
from srno.training.run import Run
from training.small_runs import make_pictures

WORLD = World(0, 1, torch.device("cpu"))
TINY = {"encoder": EDSR, "d_z": 8, "heads": 2, "projection_width": 8}


@pytest.fixture(autouse=True)
def tiny_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    changes: dict[str, dict[str, Any]] = {
        "": {},
        "-i": {"lifting": "nearest"},
        "-h": {"heads": 1},
        "-w": {"d_z": 4},
        "-l": {"iterations": 1},
    }
    for suffix, change in changes.items():
        monkeypatch.setitem(PRESETS, f"tiny{suffix}", SRNOConfig(**TINY | change))
    for make in (LIIFConfig, LTEConfig, MetaSRConfig, MLPConfig):
        monkeypatch.setitem(PRESETS, f"{make.system}/tiny", make(encoder=EDSR, width=8))


def tokens(tmp_path: Path, **changes: str) -> list[str | Path]:
    budget = {} if "steps" in changes and "minutes" not in changes else {"minutes": "0.002"}
    flags = budget | {"preset": "tiny", "stages": "8x2x16", "scales": "2,3", "threads": "1"} | changes
    paths = {"train": tmp_path / "train", "data": tmp_path / "Set", "out": tmp_path / "out"}
    pairs = [(f"--{key}", value) for key, value in (flags | paths).items()]
    return ["reproduce", "miniature", *(token for pair in pairs for token in pair)]


def test_all_members_train_the_same_steps_and_are_compared_with_srno(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_pictures(tmp_path / "train", count=2)
    make_set(tmp_path / "Set", (40, 44), (44, 40))
    code, out, err = run(capsys, *tokens(tmp_path))
    assert code == 0, err
    names = ["SRNO", *(f"SRNO (-{letter})" for letter in "ihwls"), "LIIF", "LTE", "MetaSR", "MLP"]
    content = json.loads((tmp_path / "out" / "table.json").read_text())
    assert [member["name"] for member in content["members"]] == names
    steps = content["plan"]["steps"]
    for member in members("tiny"):
        for seed in (0, 1):
            events = run_of(tmp_path / "out", member, seed).read_log()
            assert [event["step"] for event in events if event["event"] == "done"] == [steps]
            config = run_of(tmp_path / "out", member, seed).config()
            assert (config.seed, config.sampling) == (seed, "sequential" if member.name == "SRNO (-s)" else "random")
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in out.splitlines() if line.startswith("| ")}
    assert set(rows) == {"method", "---", *names}
    assert rows["SRNO"][4] == "–"
    psnr = {member["name"]: [seed["Set"]["2"] for seed in member["psnr"]] for member in content["members"]}
    differences = [ours - theirs for ours, theirs in zip(psnr["LIIF"], psnr["SRNO"], strict=True)]
    spread = abs(differences[0] - differences[1]) / 2
    assert rows["LIIF"][4] == f"{sum(differences) / 2:+.3f} ± {spread:.3f}"
    assert f"{steps} steps of 8x2x16" in out
    # a second run trains nothing; other flags are refused
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.safetensors")}
    assert run(capsys, *tokens(tmp_path))[:2] == (0, out)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.safetensors")} == before
    code, _, err = run(capsys, *tokens(tmp_path, minutes="3"))
    assert code == 2
    assert "other flags" in err


def test_steps_and_precision_are_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without calibration; a larger --seeds adds runs and keeps those that are finished."""
    make_pictures(tmp_path / "train", count=2)
    make_set(tmp_path / "Set", (40, 44))
    flags = {"steps": "2", "training-precision": "bf16"}
    code, out, err = run(capsys, *tokens(tmp_path, seeds="1", **flags))
    assert code == 0, err
    assert not (tmp_path / "out" / "calibration").exists()
    assert "Every model trained for 2 steps of 8x2x16 (patch × batch × points) with bf16 products" in out
    first = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "seed-0").rglob("*.safetensors")}
    assert run(capsys, *tokens(tmp_path, seeds="2", **flags))[0] == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "seed-0").rglob("*.safetensors")} == first
    for seed in (0, 1):
        config = run_of(tmp_path / "out", members("tiny")[0], seed).config()
        assert (config.steps, config.precision) == (2, "bf16")
    for change in ({"steps": "3"}, {"training-precision": "fp32"}):
        code, _, err = run(capsys, *tokens(tmp_path, **flags | change))
        assert code == 2
        assert "other flags" in err


def test_all_members_start_with_the_same_encoder_weights(tmp_path: Path) -> None:
    data = make_pictures(tmp_path / "train", count=2)
    plan = Miniature(minutes=1, base="tiny", data=(str(data),), stages="8x2x16", steps=1)
    starts: list[dict[str, torch.Tensor]] = []
    for member in members("tiny"):
        config = plan.config(member, seed=5)
        starts.append(Learner.begin(config, torch.device("cpu")).model.encoder.state_dict())
    for other in starts[1:]:
        assert all(torch.equal(starts[0][name], other[name]) for name in other)


def test_a_resumed_member_ends_with_the_same_weights(tmp_path: Path) -> None:
    data = make_pictures(tmp_path / "train", count=2)
    plan = Miniature(minutes=1, base="tiny", data=(str(data),), stages="8x2x16", steps=6)
    member = Member("SRNO", "tiny")

    def stop_at_three(event: dict[str, Any]) -> None:
        if event["event"] == "step" and event["step"] == 3:
            signal.raise_signal(signal.SIGTERM)

    def show(stop: bool) -> Any:
        def view(_title: str, _run: Run) -> Any:
            def report(event: dict[str, Any]) -> None:
                if stop:
                    stop_at_three(event)

            return nullcontext(report)

        return view

    with pytest.raises(KeyboardInterrupt):
        train_member(plan, member, 0, tmp_path / "stopped", WORLD, show(stop=True))
    train_member(plan, member, 0, tmp_path / "stopped", WORLD, show(stop=False))
    train_member(plan, member, 0, tmp_path / "uninterrupted", WORLD, show(stop=False))
    stopped, uninterrupted = (
        read_native(run_of(tmp_path / where, member, 0).folder / "last.safetensors").state
        for where in ("stopped", "uninterrupted")
    )
    assert all(torch.equal(stopped[name], uninterrupted[name]) for name in uninterrupted)


def test_gains_are_paired_by_seed() -> None:
    def result(*values: float) -> MemberResult:
        return MemberResult(Member("a", "tiny"), tuple({"Set": {Scale(2, 2): value}} for value in values), (1.0,), 1)

    found = gain(result(30.5, 31.1), result(30.0, 31.0), "Set", Scale(2, 2))
    assert (found.mean, found.spread) == (pytest.approx(0.3), pytest.approx(0.2))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"preset": "rdn-w"}, "the comparison also needs"),
        ({"minutes": "0"}, "--minutes 0"),
        ({"minutes": "1", "steps": "5"}, "--minutes 1 has no effect with --steps 5"),
        ({"steps": "0"}, "give --steps, at least 1"),
    ],
)
def test_wrong_use_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str], words: str
) -> None:
    make_set(tmp_path / "Set", (40, 44))
    code, _, err = run(capsys, *tokens(tmp_path, **changes))
    assert (code, err.count("\n")) == (2, 1)
    assert words in err
