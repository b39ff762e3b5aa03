"""Runs that are killed, stopped, damaged or out of disk space."""

import json
import os
import random
import resource
import signal
import time
from pathlib import Path

import pytest

from srno.checkpoints.catalogue import load
from srno.training.run import Run
from training.small_runs import SMALL, assert_same_end, make_pictures, start

STEPS = 24
RESUME_FLAGS = ("--device", "cpu", "--threads", "1")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interruption")
    make_pictures(folder / "pictures")
    return folder


@pytest.fixture(scope="module")
def uninterrupted_run(workspace: Path) -> Path:
    """A run without interruption."""
    assert train(workspace, "whole", *begin(workspace, "whole")) == 0
    return workspace / "whole"


def begin(workspace: Path, name: str, *, steps: int = STEPS, minutes: float = 0.001) -> tuple[str | Path, ...]:
    """Flags of a new run that saves its state every `minutes`."""
    flags = ("--steps", str(steps), "--checkpoint-minutes", str(minutes), "--seed", "3")
    return ("--data", workspace / "pictures", "--out", workspace / name, *SMALL, *flags)


def train(workspace: Path, name: str, *tokens: str | Path) -> int | None:
    process = start(("train", *tokens), cache=workspace / "cache", errors=workspace / f"{name}.txt")
    process.join()
    return process.exitcode


def wait_for_step(run: Path, step: int) -> None:
    deadline = time.monotonic() + 60
    while not (run / "log.jsonl").exists() or f'"step": {step},' not in (run / "log.jsonl").read_text():
        assert time.monotonic() < deadline, "no such step"
        time.sleep(0.01)


def test_a_run_killed_at_random_moments_ends_with_the_same_weights(workspace: Path, uninterrupted_run: Path):
    """SIGKILL several times: while it reads pictures, trains or writes."""
    draw = random.Random(os.getpid())
    run, kills, longest = workspace / "killed", 0, 2.0
    tokens = begin(workspace, "killed")
    while True:
        process = start(("train", *tokens), cache=workspace / "cache", errors=workspace / "killed.txt")
        process.join(draw.uniform(0.2, longest))
        if process.exitcode is not None:
            assert process.exitcode == 0, (workspace / "killed.txt").read_text()
            break
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        kills, longest = kills + 1, longest + 0.5  # so that a slow machine finishes too
        if (run / "config.json").exists():
            tokens = ("--resume", run, *RESUME_FLAGS)
    assert kills
    assert_same_end(run, uninterrupted_run)
    steps = [entry["step"] for entry in Run(run).read_log() if entry["event"] == "step"]
    assert steps == list(range(1, STEPS + 1))
    assert not list(run.rglob("*.partial"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_stopped_by_a_signal_saves_and_resumes(workspace: Path, uninterrupted_run: Path, number: signal.Signals):
    """It reports the stop, and its exit code is 128 + the signal."""
    name = number.name
    tokens = begin(workspace, name, minutes=10)  # so that only the stop saves a state
    process = start(("train", *tokens), cache=workspace / "cache", errors=workspace / f"{name}.txt")
    wait_for_step(workspace / name, 5)
    os.kill(process.pid or 0, number)
    process.join()
    assert process.exitcode == 128 + number
    printed = (workspace / f"{name}.txt").read_text()
    state = Run(workspace / name).load_state()
    assert state is not None
    assert 5 <= state["step"] < STEPS
    assert f"stopped after {state['step']} steps" in printed
    assert train(workspace, name, "--resume", workspace / name, *RESUME_FLAGS) == 0
    assert_same_end(workspace / name, uninterrupted_run)


def test_two_processes_cannot_train_the_same_run(workspace: Path):
    first = start(
        ("train", *begin(workspace, "twice", steps=1000)), cache=workspace / "cache", errors=workspace / "1.txt"
    )
    wait_for_step(workspace / "twice", 1)
    assert train(workspace, "2", "--resume", workspace / "twice", "--device", "cpu") == 2
    assert "another process is training this run" in (workspace / "2.txt").read_text()
    os.kill(first.pid or 0, signal.SIGKILL)
    first.join()


def test_a_run_resumes_from_the_older_state_if_the_newest_is_damaged(workspace: Path, uninterrupted_run: Path):
    run = workspace / "damaged"
    assert train(workspace, "damaged", *begin(workspace, "damaged", steps=12)) == 0
    newest = Run(run).states()[0]
    newest.write_bytes(newest.read_bytes()[:-1000])
    (run / ".last.safetensors.abc.partial").write_bytes(b"left by a killed process")
    assert train(workspace, "damaged", "--resume", run, *RESUME_FLAGS, "--steps", str(STEPS)) == 0
    resumed = [json.loads(line)["step"] for line in (run / "log.jsonl").open() if '"resume"' in line]
    assert resumed
    assert resumed[0] < 12
    assert not list(run.rglob("*.partial"))
    assert newest not in Run(run).states()


def test_a_run_on_a_full_disk_keeps_its_files_and_exits_with_2(workspace: Path):
    """A limit on the size of files stands for the full disk. The run trains to its end and reports the failures."""
    run = workspace / "full"
    assert train(workspace, "full", *begin(workspace, "full", steps=10)) == 0
    before = {path: path.read_bytes() for path in (run / "last.safetensors", *Run(run).states())}
    process = start(
        ("train", "--resume", run, "--steps", "20", *RESUME_FLAGS),
        cache=workspace / "cache",
        errors=workspace / "full.txt",
    )
    resource.prlimit(process.pid or 0, resource.RLIMIT_FSIZE, (100_000, 100_000))
    process.join()
    assert process.exitcode == 2  # it trained to the end, but could not save
    assert "done after 20 steps" in (workspace / "full.txt").read_text()
    assert f"free disk space and continue with --resume {run}" in (workspace / "full.txt").read_text()
    assert "could not save" in (workspace / "full.txt").read_text()
    assert "the last checkpoint is kept" in (workspace / "full.txt").read_text()
    assert {path: path.read_bytes() for path in before} == before
    load(run / "last.safetensors")
    assert train(workspace, "full", "--resume", run, *RESUME_FLAGS) == 0
    state = Run(run).load_state()
    assert state is not None
    assert state["step"] == 20
