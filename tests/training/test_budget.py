"""Budgets in steps, epochs and minutes: progress, rate and end of a run."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import sleep
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from srno.errors import SRNOError
from srno.training.config import TrainConfig
from srno.training.distributed import World
from srno.training.feed import open_pictures
from srno.training.learner import Learner
from srno.training.recorder import FIRST_CHECKPOINT_SECONDS, Recorder, validate
from srno.training.run import Run
from srno.training.schedule import LONGEST_COUNTED_INTERVAL, Clock, rate_factor
from training.small_runs import make_pictures, of_kind, small_config, train_here

share = st.floats(0, 1)


@given(
    warmup=st.floats(0.001, 0.5), constant=st.floats(0, 0.4), start=share, decay=st.sampled_from(["cosine", "linear"])
)
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


def test_the_rate_stays_at_its_peak_with_constant_1():
    config = small_config(Path(), steps=1, warmup=0.0, constant=1.0)
    assert [rate_factor(config, progress) for progress in (0, 0.5, 1, 1.001)] == [1] * 4


@given(warmup=st.floats(0.001, 0.5), progress=share, halvings=st.sets(st.floats(0.01, 0.99)))
def test_decay_step_halves_the_rate_at_each_share(warmup: float, progress: float, halvings: set[float]):
    at = tuple(sorted(halvings))
    config = small_config(Path(), steps=1, warmup=warmup, decay="step", halve_at=at)
    passed = [each for each in at if each <= progress]
    expected = progress / warmup if progress < warmup else 1 / 2 ** len(passed)
    assert rate_factor(config, progress) == pytest.approx(expected)


class SetClock:
    """Takes the place of `time` in the modules that read it: a test sets the seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    clock = SetClock()
    monkeypatch.setattr("srno.training.schedule.time", clock)
    monkeypatch.setattr("srno.training.recorder.time", clock)
    return clock


def test_the_schedule_ends_with_the_minutes(
    pictures: Path, tmp_path: Path, seconds: SetClock, monkeypatch: pytest.MonkeyPatch
):
    """Three seconds, in which steps of a quarter of a second take place."""
    update = Learner.update

    def update_for_a_quarter(learner: Learner, *given: Any, **named: Any) -> Any:
        seconds.now += 0.25
        return update(learner, *given, **named)

    monkeypatch.setattr(Learner, "update", update_for_a_quarter)
    config = small_config(pictures, minutes=0.05, warmup=0.2)
    events = train_here(config, tmp_path / "run")
    steps = of_kind(events, "step")
    assert [step["seconds"] for step in steps] == [0.25 * number for number in range(1, 13)]
    assert [step["rate"] for step in steps] == pytest.approx([rate_factor(config, i / 12) for i in range(12)])
    assert of_kind(events, "done")[0]["seconds"] == 3


def test_a_run_saves_a_state_before_its_first_step(pictures: Path, tmp_path: Path):
    run = Run(tmp_path / "run")
    config = small_config(pictures, steps=1)
    train_here(config, run.folder)
    assert [int(state.stem) for state in run.states()] == [1, 0]


def test_checkpoints_are_due_soon_after_the_start_and_then_every_checkpoint_minutes(
    pictures: Path, tmp_path: Path, seconds: SetClock
):
    config, run = small_config(pictures, steps=1), Run(tmp_path / "run")
    learner = Learner.begin(config, torch.device("cpu"))
    opened = open_pictures(config, World(0, 1, torch.device("cpu")), lambda *_: None)
    with Clock() as clock:
        recorder = Recorder(config, run, learner, clock, opened, lambda _: None)
        for due in (FIRST_CHECKPOINT_SECONDS, 60 * config.checkpoint_minutes):
            saved, start = len(run.states()), seconds.now
            seconds.now = start + due - 1
            recorder.after_step(config.stage_at(0), loss=1.0)
            assert len(run.states()) == saved
            learner.position.step += 1
            seconds.now = start + due
            recorder.after_step(config.stage_at(0), loss=1.0)
            assert len(run.states()) == saved + 1


def test_an_epoch_is_repeat_visits_of_each_picture(pictures: Path, tmp_path: Path):
    """Four pictures, three visits each: an epoch is twelve samples, six steps of two."""
    config = small_config(pictures, epochs=1.5, repeat=3, warmup=0.0, rate_per_epoch=True)
    steps = of_kind(train_here(config, tmp_path / "run"), "step")
    assert [step["sample"] for step in steps] == list(range(2, 20, 2))
    assert [step["rate"] for step in steps] == [1.0] * 6 + [pytest.approx(0.5 * (1 - math.cos(math.pi / 3)))] * 3


def test_the_rate_changes_once_an_epoch_with_a_budget_in_steps_too(pictures: Path, tmp_path: Path):
    """Epochs of six steps: the rate of steps 1 to 6, 7 to 12 and 13 to 15 is that of progress 0, 6/15 and 12/15."""
    config = small_config(
        pictures, steps=15, repeat=3, warmup=0.0, decay="step", halve_at=(0.1, 0.4, 0.85), rate_per_epoch=True
    )
    steps = of_kind(train_here(config, tmp_path / "run"), "step")
    assert [step["rate"] for step in steps] == [1.0] * 6 + [0.25] * 9


def test_stages_and_losses_change_at_their_share_of_the_budget(pictures: Path, tmp_path: Path):
    config = small_config(pictures, steps=6, stages="0.5:8x2x16,12x4x32", loss="0.75:l1,l2")
    steps = of_kind(train_here(config, tmp_path / "run"), "step")
    assert [step["sample"] for step in steps] == [2, 4, 6, 10, 14, 18]
    assert max(step["loss"] for step in steps[5:]) < min(step["loss"] for step in steps[:5])  # squares of small errors


def test_a_run_resumes_with_a_longer_budget(pictures: Path, tmp_path: Path):
    """Four steps, then eight in all: the rate follows the new schedule, and config.json has the new budget."""
    run = Run(tmp_path / "run")
    train_here(small_config(pictures, steps=4), run.folder)
    longer = small_config(pictures, steps=8)
    steps = of_kind(train_here(longer, run.folder), "step")
    assert [step["step"] for step in steps] == [5, 6, 7, 8]
    assert [step["rate"] for step in steps] == [rate_factor(longer, progress) for progress in (0.5, 0.625, 0.75, 0.875)]
    assert run.config() == longer
    assert [entry["step"] for entry in of_kind(run.read_log(), "step")] == list(range(1, 9))


def test_a_changed_budget_that_is_used_up_is_refused(pictures: Path, tmp_path: Path):
    """Only if it is changed: a finished run that resumes with its own budget ends at once. config.json stays."""
    run, before = Run(tmp_path / "run"), small_config(pictures, steps=4)
    train_here(before, run.folder)
    for budget in ({"steps": 3}, {"epochs": 0.05}, {"minutes": 1e-6}):
        with pytest.raises(SRNOError, match=rf"--{next(iter(budget))} .* used up already: the run is at step 4"):
            train_here(small_config(pictures, **budget), run.folder)
        assert run.config() == before


@pytest.mark.parametrize("budget", [{"steps": 2}, {"minutes": 0.001}])
def test_a_finished_run_that_is_resumed_is_unchanged(pictures: Path, tmp_path: Path, budget: dict[str, float]):
    config = small_config(pictures, **budget)
    train_here(config, tmp_path / "run")
    files = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    (event,) = train_here(config, tmp_path / "run")
    assert "is done already" in event["text"]
    assert files == {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}


def test_short_runs_are_validated_at_their_end_only(tmp_path: Path):
    data = make_pictures(tmp_path / "data", 3)
    config = small_config(data, minutes=0.05, hold_out=1, validation_pixels=2500, validate_minutes=0.06)
    events = train_here(config, tmp_path / "short")
    assert [event["event"] for event in events[-2:]] == ["validation", "done"]
    assert len(of_kind(events, "validation")) == 1
    events = train_here(replace(config, minutes=None, steps=3, validate_minutes=1e-5), tmp_path / "often")
    assert len(of_kind(events, "validation")) > 1


def test_validation_takes_at_most_a_tenth_of_the_time(
    tmp_path: Path, seconds: SetClock, monkeypatch: pytest.MonkeyPatch
):
    """After a validation of two seconds the next one is due in eighteen."""

    def validate_for_two_seconds(*given: Any) -> dict[str, float]:
        seconds.now += 2
        return validate(*given)

    monkeypatch.setattr("srno.training.recorder.validate", validate_for_two_seconds)
    data = make_pictures(tmp_path / "data", 3)
    config = small_config(data, steps=1, hold_out=1, validation_pixels=2500, validate_minutes=1e-5)
    learner = Learner.begin(config, torch.device("cpu"))
    pictures = open_pictures(config, World(0, 1, torch.device("cpu")), lambda *_: None)
    with Clock() as clock:
        recorder = Recorder(config, Run(tmp_path / "run"), learner, clock, pictures, lambda _: None)
        recorder.validate()
    assert recorder.next_validation - seconds.now == pytest.approx(18)


def test_the_clock_does_not_count_suspended_time(seconds: SetClock):
    clock = Clock(100)
    for _ in range(4):
        seconds.now += 0.5
        clock.seconds()
    seconds.now += 3600
    assert clock.seconds() == 102 + LONGEST_COUNTED_INTERVAL


def test_the_clock_counts_a_long_step_in_full(seconds: SetClock, monkeypatch: pytest.MonkeyPatch):
    """A step of ten intervals, during which only the clock's own thread reads it."""
    monkeypatch.setattr("srno.training.schedule.CLOCK_INTERVAL", 0.001)
    with Clock(100) as clock:
        for _ in range(10):
            seconds.now += LONGEST_COUNTED_INTERVAL
            while clock._last != seconds.now:
                sleep(0.001)
        assert clock.seconds() == 100 + 10 * LONGEST_COUNTED_INTERVAL


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, "--steps, --epochs or --minutes"),
        ({"steps": 1, "minutes": 1}, "--steps, --epochs or --minutes"),
        ({"minutes": 0}, "--steps, --epochs or --minutes"),
        ({"steps": 1, "stages": "8x2"}, "--stages '8x2': write"),
        ({"steps": 1, "stages": "0.5:8x2x16"}, "must end at 1"),
        ({"steps": 1, "loss": "0.5:l1"}, "--loss .* must end at 1"),
        ({"steps": 1, "loss": "psnr"}, "write one of l1, charbonnier, rms, l2"),
        ({"steps": 1, "stages": "8x0x16"}, "at least 1"),
        ({"steps": 1, "stages": "8x6x16", "accumulate": 4}, "--accumulate 4"),
        ({"steps": 1, "warmup": 0.5, "constant": 0.6}, "--warmup 0.5 and --constant 0.6"),
        ({"steps": 1, "ema": 1.0}, "--ema 1"),
        ({"steps": 1, "decay": "step", "halve_at": (0.5, 0.2)}, "--halve-at 0.5 0.2: give increasing shares"),
        ({"steps": 1, "decay": "step", "halve_at": (0.5, 1.0)}, "--halve-at 0.5 1: give increasing shares"),
        ({"minutes": 1, "rate_per_epoch": True}, "--rate-per-epoch has no effect with --minutes"),
        (
            {"steps": 1, "rate_per_epoch": True, "stages": "0.5:8x2x16,8x4x16"},
            "--rate-per-epoch with --steps needs one",
        ),
        ({"steps": 1, "decay": "step", "constant": 0.1}, "--constant 0.1 has no effect with --decay step"),
        ({"steps": 1, "warmup": 0.0, "warmup_from": 0.1}, "--warmup-from 0.1 has no effect with --warmup 0"),
        ({"steps": 1, "halve_at": (0.5,)}, "--halve-at 0.5 has no effect with --decay cosine"),
        (
            {"steps": 1, "optimiser": "adam", "adam_rate": 1e-4},
            "--adam-rate 0.0001 has no effect with --optimiser adam",
        ),
        ({"steps": 1, "optimiser": "adam", "weight_decay": 0.1}, "--weight-decay 0.1 has no effect with --optimiser"),
        ({"steps": 1, "rate": 0.0}, "--rate 0 "),
        ({"steps": 1, "validate_minutes": 0.0}, "--validate-minutes 0 "),
    ],
)
def test_invalid_settings_are_refused(changes: dict[str, object], named: str):
    with pytest.raises(SRNOError, match=named):
        small_config(Path("pictures"), **changes)


def test_no_data_is_refused():
    with pytest.raises(SRNOError, match="--data"):
        TrainConfig(data=(), steps=1)
