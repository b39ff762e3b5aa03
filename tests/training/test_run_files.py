"""The files of a run (weights, states, log, curves, crops) and the view of its progress."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from srno.checkpoints.catalogue import load
from srno.checkpoints.native import read_metadata
from srno.errors import SRNOError
from srno.training.distributed import World
from srno.training.feed import hold_out, open_pictures
from srno.training.run import KEPT_STATES, Run
from srno.training.view import RunView, plot, tensorboard_writer
from training.small_runs import Event, make_pictures, of_kind, small_config, train_here

SINGLE_PROCESS = World(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[Event]]:
    """A run with validation, and its events."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        config = small_config(
            make_pictures(folder / "pictures", 6), steps=6, hold_out=2, validation_pixels=80**2,
            validate_minutes=0.001, checkpoint_minutes=0.001,
        )  # fmt: skip
        return Run(folder / "run"), train_here(config, folder / "run")


def test_a_run_writes_weights_states_log_and_config(finished: tuple[Run, list[Event]]):
    run, events = finished
    for which in ("last", "best"):
        model = load(run.folder / f"{which}.safetensors")
        assert not model.training
    _, card = read_metadata(run.folder / "last.safetensors")
    assert card.name == "light, 6 steps"
    assert "6 steps, 12 samples" in card.recipe
    assert card.results["validation"]["mean"] == of_kind(events, "validation")[-1]["mean"]
    assert len(run.states()) == KEPT_STATES
    lines = [json.loads(line) for line in run.log.read_text().splitlines()]
    assert lines == json.loads(json.dumps(events))
    assert [event["step"] for event in of_kind(events, "step")] == [1, 2, 3, 4, 5, 6]
    assert run.config().hold_out == 2


def test_best_has_the_weights_of_the_best_validation(finished: tuple[Run, list[Event]]):
    run, events = finished
    best = max(of_kind(events, "validation"), key=lambda event: event["mean"])
    _, card = read_metadata(run.folder / "best.safetensors")
    assert card.results["validation"]["mean"] == best["mean"]
    assert {"x2", "x3", "x4", "mean"} <= best.keys()


def test_crops_show_bicubic_model_and_ground_truth(finished: tuple[Run, list[Event]]):
    run, events = finished
    drawn = sorted((run.folder / "crops").glob("*.png"))
    assert {int(path.stem) for path in drawn} == {event["step"] for event in of_kind(events, "validation")}
    picture = np.asarray(Image.open(drawn[-1]))
    side = picture.shape[1] // 3
    assert picture.shape == (2 * side, 3 * side, 3)
    truth = picture[:, 2 * side :].astype(float)
    for column in range(2):
        difference = picture[:, column * side : (column + 1) * side] - truth
        assert 0 < np.abs(difference).mean() < 40


def test_without_validation_best_equals_last(pictures: Path, tmp_path: Path):
    events = train_here(small_config(pictures, steps=2), tmp_path / "run")
    assert not of_kind(events, "validation")
    last, best = (load(tmp_path / "run" / f"{which}.safetensors").state_dict() for which in ("last", "best"))
    assert all(torch.equal(last[name], best[name]) for name in last)


def test_a_failed_validation_does_not_end_the_run(tmp_path: Path):
    data, validation = make_pictures(tmp_path / "data", 2), make_pictures(tmp_path / "valid", 1)
    (validation / "1.png").write_bytes((validation / "0.png").read_bytes()[:300])
    config = small_config(data, steps=2, validation=validation)
    events = train_here(config, tmp_path / "run")
    assert "validation failed" in of_kind(events, "note")[0]["text"]
    assert of_kind(events, "done")


def test_unreadable_and_small_pictures_are_reported(tmp_path: Path):
    data = make_pictures(tmp_path / "data", 3)
    make_pictures(tmp_path / "data" / "small", 1, (30, 40))
    (data / "broken.png").write_bytes(b"no picture")
    skipped = of_kind(train_here(small_config(data, steps=1), tmp_path / "run"), "skipped")
    assert [(Path(event["path"]).name, event["reason"]) for event in skipped] == [
        ("broken.png", "not a picture that Pillow can read"),
        ("0.png", "40×30, smaller than 32×32"),
    ]
    config = small_config(data, steps=1, allow_small=True)
    assert len(of_kind(train_here(config, tmp_path / "again"), "skipped")) == 1


def test_held_out_pictures_are_not_trained_on(tmp_path: Path):
    data = make_pictures(tmp_path / "data", 6)
    pictures = open_pictures(small_config(data, steps=1, hold_out=2, repeat=3), SINGLE_PROCESS, lambda *_: None)
    assert pictures.held_out is not None
    held_out = {picture.path for picture in pictures.held_out.pictures}
    training = {picture.path for picture in pictures.training.pictures}
    assert len(held_out) == 2
    assert held_out | training == set(data.glob("*.png"))
    assert not held_out & training
    assert pictures.epoch_samples == 12
    (data / "9.png").write_bytes((data / "0.png").read_bytes())  # a new picture changes the choice little
    again = open_pictures(small_config(data, steps=1, hold_out=2), SINGLE_PROCESS, lambda *_: None)
    assert again.held_out is not None
    assert len(held_out & {picture.path for picture in again.held_out.pictures}) >= 1


def test_few_pictures_are_not_all_held_out(tmp_path: Path):
    for count, held_out in ((1, 0), (3, 1), (7, 2)):
        data = make_pictures(tmp_path / str(count), count)
        pictures = open_pictures(small_config(data, steps=1, hold_out=16), SINGLE_PROCESS, lambda *_: None)
        assert len(pictures.training.pictures) == count - held_out
        assert (0 if pictures.held_out is None else len(pictures.held_out.pictures)) == held_out


def test_a_validation_folder_inside_the_data_is_not_trained_on(tmp_path: Path):
    data = make_pictures(tmp_path / "data", 3)
    valid = make_pictures(data / "valid", 2)
    pictures = open_pictures(small_config(data, steps=1, validation=valid), SINGLE_PROCESS, lambda *_: None)
    assert {picture.path.parent for picture in pictures.training.pictures} == {data}
    with pytest.raises(SRNOError, match="holds every picture"):
        hold_out(pictures.training, small_config(data, steps=1, validation=data))
    with pytest.raises(SRNOError, match=r"--validation .*nowhere is not a folder"):
        open_pictures(small_config(data, steps=1, validation=tmp_path / "nowhere"), SINGLE_PROCESS, lambda *_: None)


def test_every_stage_is_checked_before_the_first_step(pictures: Path):
    for stages, named in (("0.5:8x2x16,8x2x100", "points 100"), ("0.5:8x2x16,64x2x100", "none of 4 pictures")):
        with pytest.raises(SRNOError, match=named):
            open_pictures(small_config(pictures, steps=9, stages=stages), SINGLE_PROCESS, lambda *_: None)


def test_the_log_is_read_without_undone_entries(tmp_path: Path):
    run = Run(tmp_path)
    for step in (1, 2, 3):
        run.write_log(event="step", step=step)
    with run.log.open("a") as file:
        file.write('{"event": "step", "st')
    with run.opened():
        run.write_log(event="resume", step=2, seconds=1.0)
        run.write_log(event="step", step=3, again=True)
        run.write_log(event="rollback", step=2)
        run.write_log(event="step", step=3, third=True)
    steps = of_kind(run.read_log(), "step")
    assert steps == [
        {"event": "step", "step": 1},
        {"event": "step", "step": 2},
        {"event": "step", "step": 3, "third": True},
    ]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path):
    (tmp_path / "file").touch()
    run = Run(tmp_path / "file" / "run")
    with pytest.raises(SRNOError, match=r"cannot write into .*run: Not a directory"), run.opened():
        pass
    with pytest.raises(SRNOError, match="cannot write into"):
        run.save_config(small_config(Path(), steps=1))


def test_plot_draws_the_curves(finished: tuple[Run, list[Event]], tmp_path: Path):
    run, _ = finished
    picture = Image.open(plot(run))
    assert picture.width > 800
    assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 50
    with pytest.raises(SRNOError, match=r"no log\.jsonl"):
        plot(Run(tmp_path))


def test_tensorboard_events_hold_the_log(finished: tuple[Run, list[Event]], tmp_path: Path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    _, events = finished
    report = tensorboard_writer(tmp_path)
    for event in events:
        report(event)
    read = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    assert {"step/loss", "step/rate", "step/pixels", "validation/x2"} <= set(read.Tags()["scalars"])
    assert [scalar.step for scalar in read.Scalars("step/loss")] == [1, 2, 3, 4, 5, 6]
    losses = [event["loss"] for event in of_kind(events, "step")]
    assert [scalar.value for scalar in read.Scalars("step/loss")] == pytest.approx(losses)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_view_shows_events(
    finished: tuple[Run, list[Event]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
):
    """A bar and lines on a terminal; elsewhere only lines, without control characters."""
    _, events = finished
    with (tmp_path / "shown").open("w") as file:
        console = Console(file=file, force_terminal=terminal, width=160, highlight=False)
        monkeypatch.setattr("srno.view.Console", lambda **_: console)
        with RunView("light in run") as view:
            view({"event": "reading", "done": 1, "of": 5})
            view({"event": "resume", "step": 3, "seconds": 62.0})
            view({"event": "rollback", "step": 2, "bad_steps": 5})
            for event in events:
                view(event)
    shown = (tmp_path / "shown").read_text()
    for text in ("resuming at step 3, 0:01:02", "back to the state of step 2", "done after 6 steps", "x4 "):
        assert text in shown
    assert ("\x1b" in shown) is terminal
    assert all(text in shown for text in ("LR pixels/s", "% of peak", "loss"))
