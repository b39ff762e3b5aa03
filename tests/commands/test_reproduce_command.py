"""srno reproduce: the paper's numbers beside ours, and commands for the missing ones."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from commands.scoring import make_set, near_bilinear_model, run, run_json, write_model, write_rival
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
    assert "srno train --preset rdn --recipe paper --data DIV2K --out CHECKPOINTS/rdn\n" in out
    assert "srno train --preset liif/rdn --recipe paper" in out
    assert "srno train --preset rdn/x4 --recipe paper --r-min 4 --r-max 4 --data DIV2K" in out
    assert "DATA/Urban100/HR" in out
    assert "Ours: protocol benchmark" in out


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
    assert rows["SRNO"] == ["33.83 / –", "30.50 / –", "28.79 / –", "26.55 / –", "25.05 / –", "149 / –"]
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
    saved = {"rows": [{"method": "LTE+", "milliseconds_mean": 1234.5}, {"method": None, "milliseconds_mean": 1}]}
    (tmp_path / "bench.json").write_text(json.dumps(saved))
    tokens = ("reproduce", "table4", "--checkpoints", tmp_path / "empty")
    code, out, _ = run(capsys, *tokens, "--bench", tmp_path / "bench.json", "--out", tmp_path / "t4")
    assert code == 0
    rows = table_of(out, "**Table 4")
    assert (rows["LTE+"][-1], rows["LTE"][-1]) == ("160 / 1234", "205 / –")
    assert (tmp_path / "t4.md").read_text() == out
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
    assert "--preset edsr-baseline --recipe paper --data DIV2K" in out
    assert "**Supplement, table 1" in out
    assert "**Supplement, table 2" in out
    (run_folder / "config.json").write_text(json.dumps({"sampling": "random"}))
    _, out, _ = run(capsys, "reproduce", "suppl", "--checkpoints", tmp_path / "found")
    assert f"EDSR-baseline-SRNO: {run_folder / 'best.safetensors'}" in out
    assert "--sampling sequential --data DIV2K --out CHECKPOINTS/edsr-baseline-s" in out


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


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("table1", "--checkpoints", "nowhere"), "--checkpoints nowhere is not a folder"),
        (("fig-lifting", "--picture", "HR/0.png"), "give models to draw"),
        (("fig-zero-shot", "--picture", "HR/0.png", "--picture", "a", "--picture", "b"), "--picture: give one"),
        (("fig-zero-shot", "--picture", "HR/0.png"), "too small"),
        (("table9",), "table9"),
    ],
)
def test_wrong_use_is_an_error_that_names_the_value(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tokens: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(make_set(tmp_path / "set", (30, 30)))
    code, _, err = run(capsys, "reproduce", *tokens)
    assert code == 2
    assert words in err


def test_every_row_of_the_paper_is_a_preset() -> None:
    from srno.reproduce.published import load_published

    for names in load_published().methods.values():
        for name in names:
            assert name == "bicubic" or preset(name)
