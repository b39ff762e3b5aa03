"""Runs that are killed, stopped, or left without a disk."""

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
AGAIN = ("--device", "cpu", "--threads", "1")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("survival")
    make_pictures(folder / "pictures")
    return folder


@pytest.fixture(scope="module")
def whole_run(place: Path) -> Path:
    """A run that nothing happened to."""
    assert train(place, "whole", *begin(place, "whole")) == 0
    return place / "whole"


def begin(place: Path, name: str, *, steps: int = STEPS, minutes: float = 0.001) -> tuple[str | Path, ...]:
    """A new run that saves its state every so many minutes."""
    flags = ("--steps", str(steps), "--checkpoint-minutes", str(minutes), "--seed", "3")
    return ("--data", place / "pictures", "--out", place / name, *SMALL, *flags)


def train(place: Path, name: str, *tokens: str | Path) -> int | None:
    process = start(("train", *tokens), cache=place / "cache", errors=place / f"{name}.txt")
    process.join()
    return process.exitcode


def wait_for_step(run: Path, step: int) -> None:
    deadline = time.monotonic() + 60
    while not (run / "log.jsonl").exists() or f'"step": {step},' not in (run / "log.jsonl").read_text():
        assert time.monotonic() < deadline, "no such step"
        time.sleep(0.01)


def test_killed_at_any_moment(place: Path, whole_run: Path):
    """SIGKILL again and again, wherever it is: reading, stepping or in the middle of writing."""
    draw = random.Random(os.getpid())
    run, kills, longest = place / "killed", 0, 2.0
    tokens = begin(place, "killed")
    while True:
        process = start(("train", *tokens), cache=place / "cache", errors=place / "killed.txt")
        process.join(draw.uniform(0.2, longest))
        if process.exitcode is not None:
            assert process.exitcode == 0, (place / "killed.txt").read_text()
            break
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        kills, longest = kills + 1, longest + 0.5  # so that a slow machine gets there too
        if (run / "config.json").exists():
            tokens = ("--resume", run, *AGAIN)
    assert kills
    assert_same_end(run, whole_run)
    steps = [entry["step"] for entry in Run(run).read_log() if entry["event"] == "step"]
    assert steps == list(range(1, STEPS + 1))
    assert not list(run.rglob("*.partial"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop(place: Path, whole_run: Path, number: signal.Signals):
    """Saves, says so, and exits as a shell expects of a process that a signal ended."""
    name = number.name
    tokens = begin(place, name, minutes=10)  # so that only the stop itself can have saved the state
    process = start(("train", *tokens), cache=place / "cache", errors=place / f"{name}.txt")
    wait_for_step(place / name, 5)
    os.kill(process.pid or 0, number)
    process.join()
    assert process.exitcode == 128 + number
    said = (place / f"{name}.txt").read_text()
    state = Run(place / name).load_state()
    assert state is not None
    assert 5 <= state["step"] < STEPS
    assert f"stopped after {state['step']} steps" in said
    assert train(place, name, "--resume", place / name, *AGAIN) == 0
    assert_same_end(place / name, whole_run)


def test_two_processes_cannot_train_the_same_run(place: Path):
    first = start(("train", *begin(place, "twice", steps=1000)), cache=place / "cache", errors=place / "1.txt")
    wait_for_step(place / "twice", 1)
    assert train(place, "2", "--resume", place / "twice", "--device", "cpu") == 2
    assert "another process is training this run" in (place / "2.txt").read_text()
    os.kill(first.pid or 0, signal.SIGKILL)
    first.join()


def test_a_damaged_state_is_passed_over(place: Path, whole_run: Path):
    run = place / "damaged"
    assert train(place, "damaged", *begin(place, "damaged", steps=12)) == 0
    newest = Run(run).states()[0]
    newest.write_bytes(newest.read_bytes()[:-1000])
    (run / ".last.safetensors.abc.partial").write_bytes(b"left by a killed process")
    assert train(place, "damaged", "--resume", run, *AGAIN, "--steps", str(STEPS)) == 0
    resumed = [json.loads(line)["step"] for line in (run / "log.jsonl").open() if '"resume"' in line]
    assert resumed
    assert resumed[0] < 12
    assert not list(run.rglob("*.partial"))
    assert newest not in Run(run).states()


def test_full_disk(place: Path):
    """No file may grow beyond some size while the run goes on, as if there were no room: it goes on, and says so."""
    run = place / "full"
    assert train(place, "full", *begin(place, "full", steps=10)) == 0
    before = {path: path.read_bytes() for path in (run / "last.safetensors", *Run(run).states())}
    process = start(
        ("train", "--resume", run, "--steps", "20", *AGAIN),
        cache=place / "cache",
        errors=place / "full.txt",
    )
    resource.prlimit(process.pid or 0, resource.RLIMIT_FSIZE, (100_000, 100_000))
    process.join()
    assert process.exitcode == 2  # it trained to the end, but there is nothing to show for it
    assert "done after 20 steps" in (place / "full.txt").read_text()
    assert f"make room and go on with --resume {run}" in (place / "full.txt").read_text()
    assert "could not save" in (place / "full.txt").read_text()
    assert "the last checkpoint is kept" in (place / "full.txt").read_text()
    assert {path: path.read_bytes() for path in before} == before
    load(run / "last.safetensors")
    assert train(place, "full", "--resume", run, *AGAIN) == 0
    state = Run(run).load_state()
    assert state is not None
    assert state["step"] == 20
