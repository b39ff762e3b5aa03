"""Tables as Markdown, CSV and JSON, each with its protocol; and Student's confidence intervals."""

import csv
import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.errors import SRNOError
from srno.evaluation.comparison import compare, paired_difference, student_t
from srno.evaluation.evaluate import Evaluation, SkippedScore
from srno.evaluation.metrics import Score
from srno.evaluation.protocols import Scale, named_protocol
from srno.evaluation.tables import (
    comparison_csv,
    comparison_json,
    comparison_markdown,
    csv_text,
    json_text,
    markdown,
)

TWO, WIDE = Scale(2, 2), Scale(y=3, x=2)
PROTOCOL = named_protocol("benchmark", border="scale+6")


def evaluation(*psnr: float, model: str = "srno", data: str = "Set5", ssim: float = 0.9) -> Evaluation:
    scores = {f"{index}.png": Score(value, ssim) for index, value in enumerate(psnr)}
    skipped = (SkippedScore("9.png", WIDE, "20×20 is too small"),)
    return Evaluation(model, data, PROTOCOL, {TWO: scores, WIDE: {"0.png": scores["0.png"]}}, skipped, 1.5)


def test_json_of_one_set_has_the_documented_form() -> None:
    content = json.loads(json_text([evaluation(30.0, 34.0)]))
    assert content["mean"] == {"2": {"psnr": 32.0, "ssim": 0.9}, "2x3": {"psnr": 30.0, "ssim": 0.9}}
    assert content["pictures"]["0.png"] == {key: {"psnr": 30.0, "ssim": 0.9} for key in ("2", "2x3")}
    assert content["pictures"]["1.png"] == {"2": {"psnr": 34.0, "ssim": 0.9}}
    assert content["protocol"]["name"] == "benchmark (border=scale+6)"
    assert content["protocol"]["description"] == str(PROTOCOL)
    assert (content["model"], content["data"], content["seconds"]) == ("srno", "Set5", 1.5)
    assert content["skipped"] == [{"picture": "9.png", "scale": "2x3", "reason": "20×20 is too small"}]
    assert "sets" not in content


def test_json_of_several_sets_has_each_set_and_all_pictures_merged() -> None:
    parts = [evaluation(30.0, 34.0), evaluation(20.0, data="B100")]
    content = json.loads(json_text(parts))
    assert content["sets"] == {part.data: json.loads(json_text([part])) for part in parts}
    assert content["mean"]["2"]["psnr"] == pytest.approx(28)
    assert set(content["pictures"]) == {"Set5/0.png", "Set5/1.png", "B100/0.png"}
    assert [each["picture"] for each in content["skipped"]] == ["Set5/9.png", "B100/9.png"]


def test_infinity_is_a_string_in_json() -> None:
    text = json_text([evaluation(math.inf, 30.0)])
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert content["pictures"]["0.png"]["2"]["psnr"] == "inf"
    assert float(content["mean"]["2"]["psnr"]) == math.inf


def test_markdown_has_pictures_mean_protocol_and_skipped_pictures() -> None:
    lines = markdown([evaluation(30.0, 34.0)]).splitlines()
    assert lines[0] == "**srno on Set5**"
    assert lines[2] == "| picture | ×2 PSNR | ×2 SSIM | ×2x3 PSNR | ×2x3 SSIM |"
    assert lines[4:7] == [
        "| 0.png | 30.00 | 0.9000 | 30.00 | 0.9000 |",
        "| 1.png | 34.00 | 0.9000 | – | – |",
        "| **mean** | **32.00** | **0.9000** | **30.00** | **0.9000** |",
    ]
    assert f"Protocol {PROTOCOL}" in lines
    assert "Skipped: 9.png at ×2x3: 20×20 is too small" in lines


def test_csv_has_a_line_per_picture_scale_and_mean() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text([evaluation(30.0, 34.0), evaluation(20.0, data="B100")]))))
    found = {(row["data"], row["picture"], row["scale"]): row for row in rows}
    assert len(found) == len(rows) == 3 + 2 + 1 + 2 + 2 + 1
    assert float(found["Set5", "mean", "2"]["psnr"]) == 32
    assert (
        found["B100", "9.png", "2x3"] | {"psnr": "", "skipped": "20×20 is too small"} == found["B100", "9.png", "2x3"]
    )
    assert {row["protocol"] for row in rows} == {str(PROTOCOL)}


def test_comparison_marks_the_best_and_gives_paired_differences() -> None:
    worse, better = evaluation(30.0, 34.0, model="a|b"), evaluation(30.5, 34.7, model="c", ssim=0.95)
    text = comparison_markdown([compare([worse, better])])
    lines = text.splitlines()
    assert lines[4].startswith("| a\\|b | 32.00 | 0.9000 | – | 30.00 |")
    # differences 0.5 and 0.7: mean 0.6, deviation √0.02, t(1) = 12.706
    assert lines[5].startswith("| c | **32.60** | **0.9500** | +0.600 ± 1.271 | **30.50** | **0.9500** | +0.500 |")
    assert str(PROTOCOL) in text
    assert "paired mean difference to a|b ± half its 95% confidence interval" in text
    assert "Skipped: 9.png" in text


def test_comparison_csv_and_json_have_the_same_differences() -> None:
    comparison = compare([evaluation(30.0, 34.0, model="a"), evaluation(30.5, 34.7, model="b")])
    rows = list(csv.DictReader(io.StringIO(comparison_csv([comparison]))))
    assert [(row["model"], row["scale"], row["pictures"]) for row in rows[2:]] == [("b", "2", "2"), ("b", "2x3", "1")]
    assert float(rows[2]["psnr_difference"]) == pytest.approx(0.6)
    assert rows[3]["psnr_half_width"] == ""
    (content,) = json.loads(comparison_json([comparison]))
    difference = content["models"][1]["difference_to_first"]["2"]["psnr"]
    assert difference == {"mean": pytest.approx(0.6), "half_width_95": pytest.approx(1.2706, abs=1e-4)}
    assert content["protocol"]["description"] == str(PROTOCOL)


def test_values_that_are_equal_after_rounding_are_all_bold() -> None:
    text = comparison_markdown([compare([evaluation(30.001, model="a"), evaluation(30.002, model="b")])])
    assert text.count("**30.00**") == 4


@pytest.mark.parametrize("other", [evaluation(30.0), evaluation(30.0, 31.0, data="B100")])
def test_only_evaluations_of_the_same_pictures_are_compared(other: Evaluation) -> None:
    with pytest.raises(SRNOError, match="different pictures"):
        compare([evaluation(30.0, 31.0), other])


@given(freedom=st.integers(1, 300), confidence=st.floats(0.05, 0.999))
def test_student_t_equals_scipy(freedom: int, confidence: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert student_t(freedom, confidence) == pytest.approx(stats.t.ppf((1 + confidence) / 2, freedom), rel=1e-8)


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(st.lists(st.tuples(st.floats(10, 50), st.floats(10, 50)), min_size=2, max_size=30))
def test_paired_differences_equal_scipy(pairs: list[tuple[float, float]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    ours = paired_difference(pairs)
    interval = stats.ttest_rel(*zip(*pairs, strict=True)).confidence_interval(0.95)
    assert ours.half_width is not None
    if math.isfinite(interval.low):
        assert ours.mean - ours.half_width == pytest.approx(interval.low, abs=1e-6)
        assert ours.mean + ours.half_width == pytest.approx(interval.high, abs=1e-6)


def test_one_picture_or_infinite_scores_have_no_interval() -> None:
    assert paired_difference([(31.0, 30.0)]).half_width is None
    assert paired_difference([(math.inf, 30.0), (31.0, 30.0)]).half_width is None
    assert paired_difference([(math.inf, math.inf), (31.0, 30.0)]).mean == 0.5
    assert math.isnan(paired_difference([(math.inf, 1.0), (1.0, math.inf)]).mean)
