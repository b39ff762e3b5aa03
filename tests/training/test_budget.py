"""Steps, epochs and minutes: how far a run is, what the rate is there, and when it ends."""

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from srno.errors import SRNOError
from srno.training.config import TrainConfig
from srno.training.distributed import World
from srno.training.feed import open_pictures
from srno.training.learner import Learner
from srno.training.recorder import FIRST, Recorder
from srno.training.run import Run
from srno.training.schedule import Clock, rate_factor
from training.small_runs import make_pictures, of_kind, small_config, train_here

share = st.floats(0, 1)


@given(warmup=st.floats(0, 0.5), constant=st.floats(0, 0.4), start=share, decay=st.sampled_from(["cosine", "linear"]))
def test_the_rate_rises_stays_and_falls_to_zero(warmup: float, constant: float, start: float, decay: str):
    config = small_config(Path(), steps=1, warmup=warmup, warmup_from=start, constant=constant, decay=decay)
    grid = [i / 200 for i in range(201)]
    rates = [rate_factor(config, progress) for progress in grid]
    assert all(0 <= rate <= 1 for rate in rates)
    assert rates[-1] == pytest.approx(0, abs=1e-12)
    assert rate_factor(config, warmup) == 1
    assert rate_factor(config, warmup + constant) == 1
    for (p, a), (_, b) in pairwise(zip(grid, rates, strict=True)):
        assert a <= b + 1e-12 if p < warmup - 0.005 else a >= b - 1e-12 or p < warmup


def test_a_rate_that_never_falls():
    config = small_config(Path(), steps=1, warmup=0.0, constant=1.0)
    assert [rate_factor(config, progress) for progress in (0, 0.5, 1, 1.001)] == [1] * 4


def test_minutes_end_the_schedule_when_the_time_does(pictures: Path, tmp_path: Path):
    config = small_config(pictures, minutes=0.05, warmup=0.2)
    begun = time.monotonic()
    events = train_here(config, tmp_path / "run")
    taken = time.monotonic() - begun
    steps, end = of_kind(events, "step"), of_kind(events, "done")[0]
    longest = max(b["seconds"] - a["seconds"] for a, b in pairwise(steps))
    assert 3 <= end["seconds"] <= taken
    assert steps[-1]["seconds"] <= 3 + longest + 1e-3
    for step in steps:
        assert step["rate"] == pytest.approx(rate_factor(config, step["progress"]), abs=0.02)
    assert steps[-1]["rate"] <= rate_factor(config, 1 - (longest + 0.05) / 3)


def test_there_is_something_to_use_from_the_start(pictures: Path, tmp_path: Path):
    """Before the first step is over, that is; and the defaults leave no gap of five minutes."""
    run = Run(tmp_path / "run")
    config = small_config(pictures, steps=1)
    train_here(config, run.folder)
    assert [int(state.stem) for state in run.states()] == [1, 0]
    assert FIRST <= 30
    assert config.checkpoint_minutes < 5


def test_epochs_count_visits(pictures: Path, tmp_path: Path):
    """Four pictures, three visits each: an epoch is twelve samples, six steps of two."""
    config = small_config(pictures, epochs=1.5, repeat=3, warmup=0.0, rate_per_epoch=True)
    steps = of_kind(train_here(config, tmp_path / "run"), "step")
    assert [step["sample"] for step in steps] == list(range(2, 20, 2))
    assert [step["rate"] for step in steps] == [1.0] * 6 + [pytest.approx(0.5 * (1 - math.cos(math.pi / 3)))] * 3


def test_stages_and_losses_change_on_the_way(pictures: Path, tmp_path: Path):
    config = small_config(pictures, steps=6, stages="0.5:8x2x16,12x4x32", loss="0.75:l1,l2")
    steps = of_kind(train_here(config, tmp_path / "run"), "step")
    assert [step["sample"] for step in steps] == [2, 4, 6, 10, 14, 18]
    assert max(step["loss"] for step in steps[5:]) < min(step["loss"] for step in steps[:5])  # squares of small errors


def test_a_longer_budget_goes_on(pictures: Path, tmp_path: Path):
    """Four steps, then eight in all: the rate is that of the new schedule, and the run remembers."""
    run = Run(tmp_path / "run")
    train_here(small_config(pictures, steps=4), run.folder)
    longer = small_config(pictures, steps=8)
    steps = of_kind(train_here(longer, run.folder), "step")
    assert [step["step"] for step in steps] == [5, 6, 7, 8]
    assert [step["rate"] for step in steps] == [rate_factor(longer, progress) for progress in (0.5, 0.625, 0.75, 0.875)]
    assert run.config() == longer
    assert [entry["step"] for entry in of_kind(run.read_log(), "step")] == list(range(1, 9))


def test_a_budget_that_is_used_up_is_refused(pictures: Path, tmp_path: Path):
    """Given anew, that is; a finished run that merely goes on has nothing left to do. What the run is stays."""
    run, before = Run(tmp_path / "run"), small_config(pictures, steps=4)
    train_here(before, run.folder)
    for budget in ({"steps": 3}, {"epochs": 0.05}, {"minutes": 1e-6}):
        with pytest.raises(SRNOError, match=rf"--{next(iter(budget))} .* used up already: the run stands at step 4"):
            train_here(small_config(pictures, **budget), run.folder)
        assert run.config() == before
    assert not of_kind(train_here(before, run.folder), "step")


def test_short_runs_are_validated_at_their_end_only(tmp_path: Path):
    data = make_pictures(tmp_path / "data", 3)
    config = small_config(data, minutes=0.05, hold_out=1, validation_pixels=2500, validate_minutes=0.06)
    events = train_here(config, tmp_path / "short")
    assert [event["event"] for event in events[-2:]] == ["validation", "done"]
    assert len(of_kind(events, "validation")) == 1
    events = train_here(replace(config, minutes=None, steps=3, validate_minutes=1e-5), tmp_path / "often")
    assert len(of_kind(events, "validation")) > 1


def test_validation_takes_a_tenth_of_the_time_at_most(tmp_path: Path):
    data = make_pictures(tmp_path / "data", 3)
    config = small_config(data, steps=1, hold_out=1, validation_pixels=2500, validate_minutes=1e-5)
    learner = Learner.begin(config, torch.device("cpu"))
    pictures = open_pictures(config, World(0, 1, torch.device("cpu")), lambda *_: None)
    with Clock() as clock:
        recorder = Recorder(config, Run(tmp_path / "run"), learner, clock, pictures, lambda _: None)
        begun = time.monotonic()
        recorder.validate()
        ended = time.monotonic()
    assert recorder.next_validation - ended == pytest.approx((ended - begun) * 9, rel=0.05)


CLOCK = """
import sys, time
from srno.training.schedule import Clock
with Clock(100) as clock:
    print("begun", flush=True)
    sys.stdin.readline()
    print(clock.seconds())
"""


def test_a_suspended_process_does_not_train():
    process = subprocess.Popen([sys.executable, "-c", CLOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    begun = time.monotonic()
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(5)
    os.kill(process.pid, signal.SIGCONT)
    time.sleep(1.5)
    out, _ = process.communicate("\n")
    taken = time.monotonic() - begun
    assert 1 <= float(out) - 100 <= taken - 2.5


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, "--steps, --epochs or --minutes"),
        ({"steps": 1, "minutes": 1}, "--steps, --epochs or --minutes"),
        ({"minutes": 0}, "--steps, --epochs or --minutes"),
        ({"steps": 1, "stages": "8x2"}, "--stages '8x2': write"),
        ({"steps": 1, "stages": "0.5:8x2x16"}, "must go on to 1"),
        ({"steps": 1, "loss": "0.5:l1"}, "--loss .* must go on to 1"),
        ({"steps": 1, "loss": "psnr"}, "write one of l1, charbonnier, rms, l2"),
        ({"steps": 1, "stages": "8x0x16"}, "at least 1"),
        ({"steps": 1, "stages": "8x6x16", "accumulate": 4}, "--accumulate 4"),
        ({"steps": 1, "warmup": 0.5, "constant": 0.6}, "--warmup 0.5 and --constant 0.6"),
        ({"steps": 1, "ema": 1.0}, "--ema 1"),
        ({"steps": 1, "rate": 0.0}, "--rate 0 "),
        ({"steps": 1, "validate_minutes": 0.0}, "--validate-minutes 0 "),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], named: str):
    with pytest.raises(SRNOError, match=named):
        small_config(Path("pictures"), **changes)


def test_no_data_is_refused():
    with pytest.raises(SRNOError, match="--data"):
        TrainConfig(data=(), steps=1)
