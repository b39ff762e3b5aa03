"""Parsing of scales and borders, and protocols with complete descriptions."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.errors import SRNOError
from srno.evaluation.protocols import PROTOCOLS, Border, Protocol, Scale, named_protocol, parse_scales

factors = st.floats(1, 40).map(lambda value: round(value, 3))


def test_scales_are_parsed_and_printed() -> None:
    scales = parse_scales("2, 3,6.6,2x3,1.5×4,2")
    assert scales == (Scale(2, 2), Scale(3, 3), Scale(6.6, 6.6), Scale(y=3, x=2), Scale(y=4, x=1.5))
    assert [str(scale) for scale in scales] == ["2", "3", "6.6", "2x3", "1.5x4"]


@given(y=factors, x=factors)
def test_parsing_a_printed_scale_gives_the_same_scale(y: float, x: float) -> None:
    assert Scale.parse(str(Scale(y, x))) == Scale(y, x)


@pytest.mark.parametrize("text", ["", "two", "2x3x4", "2,,3", "0.5", "nan", "inf", "-2", "2x"])
def test_an_invalid_scale_is_refused(text: str) -> None:
    with pytest.raises(SRNOError, match="--scales"):
        parse_scales(text)


@given(y=factors, x=factors, height=st.integers(1, 3000), width=st.integers(1, 3000))
def test_the_truth_is_cut_by_less_than_one_low_resolution_pixel(y: float, x: float, height: int, width: int) -> None:
    scale = Scale(y, x)
    lr = scale.lr_size((height, width))
    hr = scale.hr_size(lr)
    assert 0 <= height - hr[0] <= y + 0.5
    assert 0 <= width - hr[1] <= x + 0.5


@given(tenths=st.integers(10, 300), times=st.integers(1, 50))
def test_divisible_sizes_are_not_cut(tenths: int, times: int) -> None:
    scale, size = Scale(tenths / 10, tenths / 10), (tenths * times, tenths * times)
    assert scale.lr_size(size) == (10 * times, 10 * times)
    assert scale.hr_size(scale.lr_size(size)) == size


def test_sizes_follow_the_published_crop_rule() -> None:
    assert Scale(3, 3).lr_size((500, 480)) == (166, 160)
    assert Scale(3, 3).hr_size((166, 160)) == (498, 480)
    assert Scale(6.6, 6.6).lr_size((512, 330)) == (77, 50)
    assert Scale(6.6, 6.6).hr_size((77, 50)) == (508, 330)


@pytest.mark.parametrize("text", ["scale", "scale+6", "0", "8"])
def test_printing_a_parsed_border_gives_the_same_text(text: str) -> None:
    assert str(Border.parse(text)) == text


@pytest.mark.parametrize("text", ["", "+", "scale-1", "scale+", "wide", "-3", "2.5"])
def test_an_invalid_border_is_refused(text: str) -> None:
    with pytest.raises(SRNOError, match="--border"):
        Border.parse(text)


def test_border_per_axis_is_rounded_up() -> None:
    scale = Scale(y=3, x=2.1)
    assert Border.parse("scale").pixels(scale) == (3, 3)
    assert Border.parse("scale").pixels(Scale(y=3, x=2)) == (3, 2)
    assert Border.parse("scale+6").pixels(Scale(y=6.6, x=2)) == (13, 8)
    assert Border.parse("8").pixels(scale) == (8, 8)


def test_named_protocols_have_the_documented_rules() -> None:
    benchmark, div2k = named_protocol("benchmark"), named_protocol("div2k")
    assert (benchmark.channel, str(benchmark.border), benchmark.cell_clip) == ("y", "scale", True)
    assert (div2k.channel, str(div2k.border), div2k.cell_clip) == ("rgb", "scale+6", True)
    kernels = [benchmark.kernel(scale) for scale in parse_scales("2,3,4,6,2.5,2x3,8")]
    assert kernels == ["matlab"] * 3 + ["pillow"] * 4
    assert named_protocol("div2k", lr="pillow").kernel(Scale(2, 2)) == "pillow"
    assert named_protocol("div2k", lr="matlab").kernel(Scale(6.6, 2)) == "matlab"


def test_overrides_become_part_of_the_name() -> None:
    assert named_protocol("benchmark", channel="y", lr="standard") == PROTOCOLS["benchmark"]
    changed = named_protocol("benchmark", channel="rgb", border="scale+6", cell_clip=False, max_pixels=9000)
    assert changed.name == "benchmark (channel=rgb, border=scale+6, cell_clip=False, max_pixels=9000)"


def test_two_different_protocols_never_have_the_same_description() -> None:
    base = {"name": "x"}
    changes = [
        {},
        {"channel": "rgb"},
        {"border": Border(6)},
        {"border": Border(6, scaled=False)},
        {"lr": "matlab"},
        {"lr": "pillow"},
        {"lr": "ready"},
        {"jpeg": 50},
        {"cell_clip": False},
        {"max_pixels": 1000},
    ]
    protocols = [Protocol(**(base | change)) for change in changes]
    assert {field.name for field in dataclasses.fields(Protocol)} == {"name"}.union(*changes)
    assert len({str(protocol) for protocol in protocols}) == len(changes)
    assert all("\n" not in str(protocol) and "SSIM on Y" in str(protocol) for protocol in protocols)
    assert all(json.loads(json.dumps(each.to_dict()))["description"] == str(each) for each in protocols)


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"name": "urban"}, "--protocol"),
        ({"channel": "luma"}, "--channel"),
        ({"lr": "lanczos"}, "--lr"),
        ({"border": "x"}, "--border"),
        ({"max_pixels": 0}, "--max-pixels"),
        ({"max_pixels": 100, "lr": "ready"}, "--max-pixels"),
    ],
)
def test_errors_name_the_flag(options: dict[str, Any], flag: str) -> None:
    merged: dict[str, Any] = {"name": "benchmark"} | options
    with pytest.raises(SRNOError, match=flag):
        named_protocol(**merged)
