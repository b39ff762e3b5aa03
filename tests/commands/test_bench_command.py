"""srno bench: times of every form of every model, with cost and the paper's times."""

import json
from pathlib import Path

import pytest

from command_runs import run
from commands.scoring import make_set, near_bilinear_model, run_json, write_model, write_rival
from srno.config import preset
from srno.evaluation.forms import forms_of
from srno.reproduce.published import load_published, paper_name


def test_every_form_is_timed_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path / "set", (48, 56), (40, 40))
    model = write_model(near_bilinear_model(), tmp_path / "srno.safetensors")
    fixed = write_rival("edsr-x2", tmp_path / "x2.safetensors")
    tokens = ("bench", model, fixed, "--data", data, "--scales", "2,3", "--repeats", "2", "--threads", "1")
    content = run_json(capsys, *tokens, "--out", tmp_path / "bench")
    rows = {(Path(row["model"]).stem, row["form"]): row for row in content["rows"]}
    assert list(rows) == [("srno", "textbook"), ("srno", "exact"), ("srno", "quadrature"), ("x2", "points")]
    for (name, _), row in rows.items():
        times = row["milliseconds"]
        assert list(times) == (["2"] if name == "x2" else ["2", "3"])
        assert all(value > 0 for value in times.values())
        assert row["milliseconds_mean"] == pytest.approx(sum(times.values()) / len(times))
        assert row["peak_bytes"] >= 0
        counted = run_json(capsys, "profile", row["model"])
        assert (row["parameters"], row["flops_paper"]) == (counted["parameters"], counted["flops_paper"])
    assert "2 pictures (set: 56×48, 40×40 at ×2) on cpu, 1 threads" in content["conditions"]
    assert json.loads((tmp_path / "bench.json").read_text()) == content
    table = (tmp_path / "bench.md").read_text()
    assert "| model | form | params, M | GFLOPs | ×2, ms | ×3, ms | mean, ms |" in table
    assert "quadrature: the engine, integrals from 16384 output pixels" in table


def test_forms_are_matched_to_the_papers_methods() -> None:
    published = load_published()
    names = {
        (name, form): paper_name(preset(name), form, published)
        for name in ("edsr-baseline", "edsr-baseline-l", "liif/edsr-baseline", "lte/edsr-baseline", "light", "rdn")
        for form in forms_of(preset(name))
    }
    assert {key: name for key, name in names.items() if name} == {
        ("edsr-baseline", "exact"): "SRNO",
        ("edsr-baseline-l", "exact"): "SRNO (-l)",
        ("liif/edsr-baseline", "points"): "LIIF",
        ("lte/edsr-baseline", "points"): "LTE",
        ("lte/edsr-baseline", "maps"): "LTE+",
    }
    assert all(name in published.tables["table4"].milliseconds for name in names.values() if name)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("nobody",), "no model 'nobody'"),
        (("light", "--repeats", "0"), "--repeats 0"),
        (("edsr/x2", "--scales", "3"), "supports none of the --scales"),
        (("light", "--scales", "999"), "too small"),
    ],
)
def test_wrong_use_is_a_one_line_error(capsys: pytest.CaptureFixture[str], tokens: tuple[str, ...], words: str) -> None:
    code, out, err = run(capsys, "bench", *tokens)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
