"""srno compare: one table for several models, and the figure of close-ups."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command_runs import run
from commands.scoring import make_set, near_bilinear_model, run_json, write_model, write_rival


def test_the_table_has_the_best_in_bold_and_paired_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make_set(tmp_path / "Tiny", (40, 44), (48, 40))
    model = write_model(near_bilinear_model(), tmp_path / "ours.safetensors")
    fixed = write_rival("edsr-x2", tmp_path / "x2.safetensors")
    tokens = ("compare", model, "bicubic", f"EDSR={fixed}", "--data", data, "--scales", "2,3")
    code, out, err = run(capsys, *tokens, "--out", tmp_path / "table")
    assert code == 0, err
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in out.splitlines() if "|" in line}
    assert set(rows) == {"model", "---", "ours", "bicubic", "EDSR"}
    assert rows["EDSR"][3].strip() == "–"  # a network for ×2 has no result at ×3
    assert re.fullmatch(r"[+-]\d+\.\d{3} ± \d+\.\d{3}", rows["bicubic"][2])
    best = max(rows[name][0].strip("*") for name in ("ours", "bicubic", "EDSR"))
    bold = [name for name in rows if rows[name][0].startswith("**")]
    assert [rows[name][0].strip("*") for name in bold] == [best]
    assert "Protocol benchmark" in out
    assert "Skipped: EDSR at ×3: goes up to ×2" in out
    assert {path.name for path in tmp_path.glob("table.*")} == {"table.json", "table.md", "table.csv"}
    single = run_json(capsys, "evaluate", model, "--data", data, "--scales", "2,3")
    (content,) = run_json(capsys, *tokens)
    assert content["models"][0]["mean"] == single["mean"]
    assert content["models"][1]["difference_to_first"]["2"]["psnr"]["mean"] == pytest.approx(
        content["models"][1]["mean"]["2"]["psnr"] - single["mean"]["2"]["psnr"]
    )


def test_models_of_the_same_name_are_listed_by_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path / "set", (40, 44))
    paths = [write_model(near_bilinear_model(seed=seed), tmp_path / f"{seed}" / "best.safetensors") for seed in (0, 1)]
    (content,) = run_json(capsys, "compare", *paths, "--data", data)
    assert [model["model"] for model in content["models"]] == [str(path) for path in paths]
    code, _, err = run(capsys, "compare", paths[0], paths[0], "--data", data)
    assert code == 2
    assert "is given twice" in err


def test_the_panel_shows_the_boxes_and_every_close_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path / "set", (64, 80), (60, 60))
    model = write_model(near_bilinear_model(), tmp_path / "ours.safetensors")
    panel = tmp_path / "figures" / "panel.png"
    tokens = ("compare", "bicubic", model, "--data", data, "--scales", "2", "--panel", panel, "--scale", "4")
    code, _, err = run(capsys, *tokens, "--picture", "0", "--boxes", "8,8,28,28;40,30,28,14")
    assert code == 0, err
    pixels = np.asarray(Image.open(panel).convert("RGB")).astype(int)
    # frames in the two boxes' colours: around three close-ups each, and once in the overview
    for colour in ((0xD6, 0x27, 0x28), (0x1F, 0x77, 0xB4)):
        assert np.all(pixels == colour, axis=-1).sum() > 3 * 4 * 200
    hr = np.asarray(Image.open(data / "HR" / "0.png"))
    truth = hr[8:36, 8:36].repeat(8, axis=0).repeat(8, axis=1)
    windows = [
        (top, left)
        for top, left in np.argwhere(np.all(pixels == truth[0, 0], axis=-1))
        if np.array_equal(pixels[top : top + 224, left : left + 224], truth)
    ]
    assert len(windows) == 1, "the truth's close-up is in the figure, pixel for pixel"


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("bicubic",), "two models or more"),
        (("bicubic", "b=bicubic", "--panel", "p.png", "--picture", "7"), "--picture '7' is not in the data"),
        (("bicubic", "b=bicubic", "--panel", "p.png", "--boxes", "1,2,3"), "--boxes '1,2,3'"),
        (("bicubic", "b=bicubic", "--panel", "p.png", "--boxes", "30,30,30,30"), "not within the picture of 28×24"),
        (("bicubic", "b=bicubic", "--panel", "p.jpg"), "written as .png"),
        (("bicubic", "b=bicubic", "--panel", "p.png", "--scale", "30"), "too small"),
    ],
)
def test_wrong_use_is_a_one_line_error(
    usage_error: Callable[..., tuple[str, str]], tokens: tuple[str, ...], words: str
) -> None:
    _, err = usage_error("compare", *tokens, "--data", ".", "--scales", "2")
    assert err.count("\n") == 1
    assert words in err
    assert not Path("p.png").exists()
