"""srno reproduce: the paper's numbers beside ours, and commands for the missing ones."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from command_runs import run
from commands.scoring import make_set, near_bilinear_model, run_json, write_model, write_rival
from srno.cli import make_app
from srno.commands.train import train as train_app
from srno.config import preset
from srno.evaluation.forms import load_or_build


def table_of(text: str, title: str) -> dict[str, list[str]]:
    """Rows of the table under a title, by their first cell."""
    lines = text[text.index(title) :].splitlines()[2:]
    rows = [line.strip("| ").split(" | ") for line in lines[: lines.index("")]]
    return {row[0]: row[1:] for row in rows}


def write_preset(name: str, path: Path) -> Path:
    """Write a preset at full size with small weights, so that its output is finite."""
    model = load_or_build(name, "cpu")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.1)
    return write_model(model, path)


def test_table3_is_close_to_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "reproduce", "table3")
    assert code == 0
    rows = table_of(out, "**Table 3")
    assert rows["EDSR-baseline-SRNO"] == ["2.0 / 2.02", "65.8 / 65.80"]
    for method, (parameters, flops) in list(rows.items())[2:]:
        for cell, tolerance in ((parameters, 0.05), (flops, 0.005 * float(flops.split(" / ")[0]))):
            theirs, ours = map(float, cell.split(" / "))
            assert ours == pytest.approx(theirs, abs=tolerance + 0.05), method


def test_an_empty_table_has_the_papers_numbers_and_the_commands_for_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    code, out, _ = run(capsys, "reproduce", "table2", "--checkpoints", tmp_path / "empty")
    assert code == 0
    for data, first in (("Set5", "38.32"), ("Set14", "34.27"), ("B100", "32.43"), ("Urban100", "33.33")):
        assert table_of(out, f"**Table 2: benchmark sets – {data}**")["RDN-SRNO"][0] == f"{first} / –"
    assert "srno train --preset rdn --recipe paper --data DATA/DIV2K/DIV2K_train_HR --out CHECKPOINTS/rdn\n" in out
    assert "srno train --preset liif/rdn --recipe liif --data" in out
    assert "srno train --preset lte/rdn --recipe lte --data" in out
    assert "srno train --preset metasr/rdn --recipe metasr --data" in out
    assert "srno train --preset rdn/x4 --recipe liif --r-min 4 --r-max 4 --data DATA/DIV2K/DIV2K_train_HR" in out
    assert "DATA/Urban100/HR" in out
    assert "Ours: protocol benchmark" in out


@pytest.mark.parametrize("table", ["table1", "table2", "table4", "suppl", "fig-samples"])
def test_the_printed_commands_parse_and_train_on_the_training_pictures_alone(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    code, out, err = run(capsys, "reproduce", table, "--checkpoints", tmp_path / "empty")
    assert code == 0, err
    commands = [shlex.split(line, comments=True) for line in out.splitlines() if line.startswith("srno ")]
    training = [words for words in commands if words[1] == "train"]
    assert training
    for words in commands:
        make_app().parse_args(words[1:], exit_on_error=False, print_error=False)
    for words in training:
        _, bound, _ = train_app.parse_args(words[2:], exit_on_error=False, print_error=False)
        folders = {str(path) for path in bound.arguments["config"].data}
        assert folders <= {"DATA/DIV2K/DIV2K_train_HR", "DATA/Flickr2K"}


def make_div2k(folder: Path) -> Path:
    """The usual layout: training and validation pictures side by side, and ready low-resolution files."""
    for name, first, side in (("DIV2K_train_HR", 1, 64), ("DIV2K_valid_HR", 801, 72)):
        made = make_set(folder / "made", (side, 80), (side, 76))
        (folder / name).mkdir(parents=True)
        for number in range(2):
            (made / "HR" / f"{number}.png").rename(folder / name / f"{first + number:04}.png")
        shutil.rmtree(made)
    ready = folder / "DIV2K_valid_LR_bicubic" / "X2"
    ready.mkdir(parents=True)
    for path in (folder / "DIV2K_valid_HR").iterdir():
        with Image.open(path) as picture:
            Image.new("RGB", (picture.width // 2, picture.height // 2), "gray").save(ready / f"{path.stem}x2.png")
    return folder


@pytest.mark.parametrize("data", ["DIV2K", "."])
def test_table1_scores_the_validation_pictures_of_the_usual_layout(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_div2k(tmp_path / "data" / "DIV2K")
    (tmp_path / "empty").mkdir()
    tokens = ("reproduce", "table1", "--data", tmp_path / "data" / data, "--checkpoints", tmp_path / "empty", "--json")
    code, out, err = run(capsys, *tokens, "--scales", "2,3")
    assert code == 0, err
    (table,) = json.loads(out)
    assert list(table["sets"]) == ["DIV2K"]
    expected = run_json(
        capsys, *("evaluate", "bicubic", "--protocol", "div2k", "--data", folder / "DIV2K_valid_HR", "--scales", "2,3")
    )
    assert table["sets"]["DIV2K"]["Bicubic"]["ours"] == {
        scale: score["psnr"] for scale, score in expected["mean"].items()
    }
    assert "left out DIV2K_train_HR: DIV2K's training pictures are not scored" in err
    code, out, err = run(capsys, *tokens, "--lr", "ready", "--scales", "2")
    assert code == 0, err
    (ready,) = json.loads(out)
    assert ready["protocol"]["lr"] == "ready"
    assert ready["sets"]["DIV2K"]["Bicubic"]["ours"]["2"] < table["sets"]["DIV2K"]["Bicubic"]["ours"]["2"]


@pytest.mark.parametrize("name", ["DIV2K", "DIV2K_train_HR", "DIV2K_HR"])
def test_training_pictures_of_div2k_are_never_scored(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither in a folder of their own nor among the others."""
    shutil.copytree(make_div2k(tmp_path / "usual") / "DIV2K_train_HR", tmp_path / "data" / name)
    code, out, err = run(capsys, "reproduce", "table1", "--data", tmp_path / "data")
    assert code == 0
    assert f"left out {name}" in err
    rows = table_of(out, "**Table 1: arbitrary scales – DIV2K**")
    assert all(cell.endswith("/ –") for cell in rows["Bicubic"])
    assert out.count("**Table 1") == 1
    assert "with pictures in DATA/DIV2K/DIV2K_valid_HR" in out


def test_weights_selected_on_the_tables_pictures_are_left_out_or_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run was validated on the set that the table reports: its last weights are taken; without them, a note."""
    data = make_set(tmp_path / "data" / "Set14", (48, 56))
    folder = tmp_path / "runs" / "own"
    write_model(near_bilinear_model(seed=1), folder / "best.safetensors")
    write_model(near_bilinear_model(seed=2), folder / "last.safetensors")
    (folder / "config.json").write_text(json.dumps({"validation": str(data), "stages": "48x16x1152"}))
    tokens = ("reproduce", "table4", "--data", tmp_path / "data", "--checkpoints", tmp_path / "runs", "--scales", "2")
    code, out, err = run(capsys, *tokens)
    assert code == 0, err
    assert f"own (not in the paper): {folder / 'last.safetensors'}" in out
    assert "the last weights of the run, since pictures of Set14 chose the best ones" in out
    (folder / "last.safetensors").unlink()
    out = run(capsys, *tokens)[1]
    assert "these weights were chosen by their score on Set14" in out
    (folder / "config.json").write_text(json.dumps({"validation": None, "stages": "48x16x1152"}))
    out = run(capsys, *tokens)[1]
    assert f"own (not in the paper): {folder / 'best.safetensors'}" in out
    assert "chosen by" not in out


@pytest.mark.parametrize("table", ["table1", "table2", "table4", "suppl"])
def test_the_flags_of_evaluate_work_on_every_table(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make_set(tmp_path / "Own", (48, 56))
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    path = write_model(near_bilinear_model(), checkpoints / "own.safetensors")
    flags = ("--scales", "2,2.5", "--protocol", "div2k", "--lr", "pillow", "--border", "3", "--no-cell-clip")
    flags = (*flags, "--integral", "64", "--max-pixels", "2000")
    code, out, err = run(capsys, "reproduce", table, "--data", data, "--checkpoints", checkpoints, *flags)
    assert code == 0, err
    protocol = "div2k (border=3, lr=pillow, cell_clip=False, max_pixels=2000): PSNR on RGB"
    assert f"Ours: protocol {protocol}" in out
    assert "own (not in the paper): integrals from 64 points" in out
    content = run_json(capsys, "evaluate", path, "--data", data, *flags)
    cells = table_of(out, "– Own**")["own (not in the paper)"]
    assert cells == [f"– / {score['psnr']:.2f}" for score in content["mean"].values()]


def test_checkpoints_fill_their_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path / "data" / "Set14", (48, 56))
    make_set(tmp_path / "data" / "Mine", (48, 48))
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    paths = {
        "SRNO (-w)": write_preset("edsr-baseline-w", folder / "w.safetensors"),
        "LTE": write_preset("lte/edsr-baseline", folder / "a-run" / "last.safetensors"),
    }
    own = write_model(near_bilinear_model(), folder / "own.safetensors")
    (folder / "broken.safetensors").write_bytes(b"12345678{")
    tokens = ("--data", tmp_path / "data", "--checkpoints", folder)
    code, out, err = run(capsys, "reproduce", "table4", *tokens)
    assert code == 0, err
    assert "left out" in err
    assert "broken.safetensors" in err
    rows = table_of(out, "**Table 4: design choices and running time – Set14**")
    for method, path in paths.items():
        content = run_json(capsys, "evaluate", path, "--data", data, "--scales", "2,3,4,6,8")
        ours = [f"{score['psnr']:.2f}" for score in content["mean"].values()]
        assert [cell.split(" / ")[1] for cell in rows[method][:5]] == [*ours, *["–"] * (5 - len(ours))]
        assert f"- {method}: {path}" in out
    assert rows["LTE+"][0].split(" / ")[1] == rows["LTE"][0].split(" / ")[1]
    assert rows["SRNO"] == ["33.83 / –", "30.50 / –", "28.79 / –", "26.55 / –", "25.05 / –", "149 / –", "–"]
    assert rows["own (not in the paper)"][0].startswith("– / ")
    assert rows["Bicubic"][0].startswith("30.24 / ")
    assert f"own (not in the paper): {own}" in out
    assert set(table_of(out, "– Mine**")) - {"method", "---"} == {*paths, "LTE+", "Bicubic", "own (not in the paper)"}
    # a checkpoint of another table, or a second one for a row, is not dropped
    table2 = run(capsys, "reproduce", "table2", *tokens)[1]
    assert {"w (not in the paper)", "a-run (not in the paper)"} <= set(table_of(table2, "– Set14**"))
    assert "--preset edsr-baseline-l " in out
    assert "--preset edsr-baseline-w " not in out


def test_times_are_read_from_bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    row = {"method": "LTE+", "milliseconds_mean": 1234.5, "form": "maps", "model": "lte/edsr-baseline"}
    saved = {"conditions": "2 pictures on cpu, 1 threads.", "rows": [row, {"method": None, "milliseconds_mean": 1}]}
    (tmp_path / "bench.json").write_text(json.dumps(saved))
    tokens = ("reproduce", "table4", "--checkpoints", tmp_path / "empty")
    named = (*tokens, "--bench", tmp_path / "bench.json", "--machine", "a laptop")
    code, out, _ = run(capsys, *named, "--out", tmp_path / "t4")
    assert code == 0
    rows = table_of(out, "**Table 4")
    assert (rows["LTE+"][-2:], rows["LTE"][-2:]) == (["160 / 1234", "maps, fp32"], ["205 / –", "–"])
    assert "Our times: a laptop; 2 pictures on cpu, 1 threads." in out
    assert "Paper's times: NVIDIA RTX 3090" in out
    assert (tmp_path / "t4.md").read_text() == out
    time = json.loads((tmp_path / "t4.json").read_text())[0]["sets"]["Set14"]["LTE+"]["time"]
    assert time == {"milliseconds": 1234.5, "form": "maps", "precision": "fp32", "machine": "a laptop"}
    code, _, err = run(capsys, *named[:-2])
    assert code == 2
    assert "does not name the machine; give it with --machine" in err
    (tmp_path / "bench.json").write_text(json.dumps(saved | {"machine": "a server"}))
    assert "Our times: a server; 2 pictures" in run(capsys, *named[:-2])[1]
    assert "srno bench edsr-baseline edsr-baseline-i" in run(capsys, *tokens)[1]
    code, _, err = run(capsys, *tokens, "--bench", tmp_path / "empty")
    assert code == 2
    assert "--bench" in err


def test_sequential_sampling_is_read_from_the_runs_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_folder = tmp_path / "found" / "second"
    write_preset("edsr-baseline", run_folder / "best.safetensors")
    (run_folder / "config.json").write_text(json.dumps({"sampling": "sequential"}))
    code, out, _ = run(capsys, "reproduce", "suppl", "--checkpoints", tmp_path / "found")
    assert code == 0
    assert f"EDSR-baseline-SRNO (-s): {run_folder / 'best.safetensors'}" in out
    assert "--preset edsr-baseline --recipe paper --data DATA/DIV2K/DIV2K_train_HR" in out
    assert "**Supplement, table 1" in out
    assert "**Supplement, table 2" in out
    (run_folder / "config.json").write_text(json.dumps({"sampling": "random"}))
    _, out, _ = run(capsys, "reproduce", "suppl", "--checkpoints", tmp_path / "found")
    assert f"EDSR-baseline-SRNO: {run_folder / 'best.safetensors'}" in out
    command = "--sampling sequential --data DATA/DIV2K/DIV2K_train_HR --out CHECKPOINTS/edsr-baseline-s"
    assert command in out


@pytest.mark.parametrize(
    ("figure", "rows", "tiles"),
    [("fig-zero-shot", 2, 4), ("fig-fractional", 2, 4), ("fig-sampling", 1, 4), ("fig-lifting", 1, 3)],
)
def test_figures_have_a_framed_close_up_per_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], figure: str, rows: int, tiles: int
) -> None:
    data = make_set(tmp_path / "set", (150, 160), (160, 180))
    ours = write_model(near_bilinear_model(), tmp_path / "ours.safetensors")
    liif = write_rival("liif", tmp_path / "liif.safetensors")
    pictures = [token for i in range(rows) for token in ("--picture", data / "HR" / f"{i}.png")]
    tokens = (*pictures, "--model", f"SRNO={ours}", "--model", f"LIIF={liif}", "--out", tmp_path / "f.png")
    code, _, err = run(capsys, "reproduce", figure, *tokens, "--boxes", "40,40,28,28")
    assert code == 0, err
    assert "the paper also shows" in err
    pixels = np.asarray(Image.open(tmp_path / "f.png").convert("RGB")).astype(int)
    frames = np.all(pixels == (0xD6, 0x27, 0x28), axis=-1)
    # each close-up of 28·8 pixels has a frame three pixels thick: count their top edges
    tops = frames & ~np.roll(frames, 1, axis=0)
    assert sum(int(row.sum()) >= 230 for row in tops) >= rows
    assert tops.sum() >= rows * tiles * 230


def test_the_supplements_comparison_has_a_row_per_pair_though_scales_repeat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six pictures at ×8, ×4, ×8, ×4, ×2.3 and ×7.5 are six rows, each of its own picture."""
    data = make_set(tmp_path / "set", *[(150 + 8 * i, 160) for i in range(6)])
    ours = write_model(near_bilinear_model(), tmp_path / "ours.safetensors")
    pictures = [token for i in range(6) for token in ("--picture", data / "HR" / f"{i}.png")]
    tokens = ("reproduce", "fig-comparison", "--model", f"SRNO={ours}", "--boxes", "40,40,28,28")
    code, _, err = run(capsys, *tokens, *pictures, "--out", tmp_path / "six.png")
    assert code == 0, err
    assert "the paper also shows LIIF, LTE" in err
    with Image.open(tmp_path / "six.png") as six:
        height = six.height
    code, _, err = run(capsys, *tokens, *pictures[:4], "--scales", "4,4", "--out", tmp_path / "two.png")
    assert code == 0, err
    code, _, err = run(capsys, *tokens, *pictures[:2], "--scales", "4,4", "--out", tmp_path / "same.png")
    assert code == 0, err
    two, same = (np.asarray(Image.open(tmp_path / name)) for name in ("two.png", "same.png"))
    assert height > 2.5 * len(two)
    assert not np.array_equal(two[: len(same)], same[: len(two)])


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("table1", "--bench", "b.json"), "--bench"),
        (("table4", "--machine", "a laptop"), "--machine 'a laptop' has no effect without --bench"),
        (("table2", "--protocol", "own"), "--protocol 'own' is not one of"),
        (("fig-basis", "--picture", "HR/0.png", "--channels", "a"), "--channels 'a'"),
        (("fig-basis", "--picture", "HR/0.png", "--channels", "1,9999"), "channels 1, 9999 of z: there are 0 … "),
        (("fig-basis", "--picture", "HR/0.png", "--count", "0"), "--count 0 is too small"),
        (
            ("fig-basis", "--picture", "HR/0.png", "--count", "2", "--channels", "1"),
            "--count 2 has no effect with --channels 1",
        ),
        (("fig-basis", "--picture", "HR/0.png", "--out", "f.jpg"), "figures are written as .png"),
        (("fig-patterns", "--picture", "HR/0.png"), "a crop needs 118² pixels"),
        (("fig-samples", "--sides", "48,x"), "--sides '48,x'"),
        (("fig-samples", "--preset", "light-w"), "--preset light-w: the figure needs lte/light-w"),
        (("table1", "--checkpoints", "nowhere"), "--checkpoints nowhere is not a folder"),
        (("fig-lifting", "--picture", "HR/0.png"), "give models to draw"),
        (("fig-zero-shot", "--picture", "HR/0.png", "--picture", "a", "--picture", "b"), "--picture: give one"),
        (("fig-zero-shot", "--picture", "HR/0.png"), "too small"),
        (("table9",), "table9"),
    ],
)
def test_wrong_use_is_an_error_that_names_the_value(
    usage_error: Callable[..., tuple[str, str]], tokens: tuple[str, ...], words: str
) -> None:
    _, err = usage_error("reproduce", *tokens)
    assert words in err


def test_every_row_of_the_paper_is_a_preset() -> None:
    from srno.reproduce.published import load_published

    for names in load_published().methods.values():
        for name in names:
            assert name == "bicubic" or preset(name)
