"""Bad steps are skipped, several in a row cause a rollback, and a run that diverges ends with an error."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from srno.errors import SRNOError
from srno.training.distributed import World
from srno.training.learner import LOSS_SPIKE_FACTOR, Learner, Position
from srno.training.loop import BAD_STEPS_BEFORE_ROLLBACK, MAX_ROLLBACKS, roll_back
from srno.training.run import Run
from training.small_runs import Event, of_kind, small_config, train_here

SINGLE_PROCESS = World(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def mostly_grey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine grey pictures, which are learnt quickly, and one of noise, whose loss is many times theirs."""
    folder = tmp_path_factory.mktemp("grey")
    for number in range(9):
        Image.new("RGB", (40, 40), (120 + number,) * 3).save(folder / f"{number}.png")
    Image.fromarray(np.random.default_rng(0).integers(256, size=(40, 40, 3), dtype=np.uint8)).save(folder / "noise.png")
    return folder


def notes(events: list[Event]) -> list[str]:
    return [event["text"] for event in of_kind(events, "note")]


def test_a_step_with_a_loss_spike_is_skipped_and_reported(mostly_grey: Path, tmp_path: Path):
    """The noise picture causes real spikes. Skipped steps use up their samples but do not count as steps."""
    config = small_config(mostly_grey, steps=40, stages="8x1x16", seed=1, warmup=0.0, optimiser="adam", rate=1e-3)
    events = train_here(config, tmp_path / "run")
    skipped = notes(events)
    assert skipped
    assert all("skipped" in text for text in skipped)
    assert len(of_kind(events, "step")) == 40
    assert of_kind(events, "step")[-1]["sample"] == 40 + len(skipped)
    assert not of_kind(events, "rollback")
    state = Run(tmp_path / "run").load_state()
    assert state is not None
    assert all(tensor.isfinite().all() for tensor in state["model"].values())


def test_a_spike_is_not_skipped_without_skip_spikes(mostly_grey: Path, tmp_path: Path):
    """The same run as above, which has spikes, takes every step."""
    config = small_config(
        mostly_grey, steps=40, stages="8x1x16", seed=1, warmup=0.0, optimiser="adam", rate=1e-3, skip_spikes=False
    )
    events = train_here(config, tmp_path / "run")
    assert not notes(events)
    assert of_kind(events, "step")[-1]["sample"] == 40


def test_a_step_without_a_finite_loss_is_skipped_in_any_case(pictures: Path, tmp_path: Path):
    config = small_config(pictures, steps=30, optimiser="adam", rate=1e30, warmup=0.0, clip=None, skip_spikes=False)
    with pytest.raises(SRNOError, match="training diverges"):
        train_here(config, tmp_path / "run")
    assert "loss nan" in Run(tmp_path / "run").log.read_text()


def test_a_run_with_too_high_a_rate_ends_with_an_error(pictures: Path, tmp_path: Path):
    """The rate rises until the loss explodes. The run rolls back, retries, gives up, and keeps finite weights."""
    run = Run(tmp_path / "run")
    config = small_config(
        pictures, steps=200, optimiser="adam", rate=2.0, warmup=1.0, clip=None, checkpoint_minutes=0.001
    )
    with pytest.raises(SRNOError, match=r"training diverges: start again with a lower --rate, perhaps from --init"):
        train_here(config, run.folder)
    raw = run.log.read_text()
    assert raw.count("skipped") == (MAX_ROLLBACKS + 1) * BAD_STEPS_BEFORE_ROLLBACK
    assert raw.count('"rollback"') == MAX_ROLLBACKS
    state = run.load_state()
    assert state is not None
    assert all(tensor.isfinite().all() for tensor in state["model"].values())


@pytest.mark.parametrize(
    ("loss", "norm", "accepted"),
    [
        (0.1, 1.0, True),
        (0.1 * LOSS_SPIKE_FACTOR * 0.99, 1.0, True),
        (0.1 * LOSS_SPIKE_FACTOR * 1.01, 1.0, False),
        (math.nan, 1.0, False),
        (math.inf, 1.0, False),
        (0.1, math.nan, False),
        (0.1, math.inf, False),
    ],
)
def test_steps_with_a_spike_or_without_a_finite_loss_are_not_accepted(loss: float, norm: float, accepted: bool):
    assert Position(running_loss=0.1).accepts(loss, norm) is accepted
    assert Position().accepts(1000.0, 1.0)  # nothing to compare with yet


def test_a_rollback_restores_a_state_from_before_the_bad_steps(pictures: Path, tmp_path: Path):
    """Or the oldest state if there is none; the sample number continues, and the number of rollbacks is limited."""
    run, config = Run(tmp_path / "run"), small_config(pictures, steps=4)
    train_here(config, run.folder)
    assert [int(state.stem) for state in run.states()] == [4, 0]
    learner = Learner.begin(config, SINGLE_PROCESS.device)
    position = learner.position
    for number, (step, expected) in enumerate(((7, 4), (4, 0), (0, 0), (7, 4), (5, 4)), start=1):
        position.step, position.sample, position.bad_steps = step, 100 * number, BAD_STEPS_BEFORE_ROLLBACK
        roll_back(run, learner, SINGLE_PROCESS)
        assert vars(position) | {"running_loss": 0} == vars(
            Position(step=expected, sample=100 * number, rollbacks=number, running_loss=0)
        )
    with pytest.raises(SRNOError, match="diverges"):
        roll_back(run, learner, SINGLE_PROCESS)
    assert [int(state.stem) for state in run.states()] == [4, 0]
