"""Output sizes to the pixel."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srno.errors import SRNOError
from srno.upscaling.sizes import Target, make_request

sides = st.integers(1, 5000)
sizes = st.tuples(sides, sides)


@given(sizes, st.integers(1, 3000), st.integers(1, 3000))
def test_factors_round_to_the_nearest_pixel_and_halves_up(size: tuple[int, int], x: int, y: int):
    target = make_request(scale=f"{x / 100}x{y / 100}").target(size)
    for new, old, percent in zip(target.size, size, (x, y), strict=True):
        exact = Fraction(old * percent, 100)
        assert new == max(1, int(exact + Fraction(1, 2)))


@given(sizes, sizes)
def test_contain_fits_into_the_box_and_touches_it(size: tuple[int, int], box: tuple[int, int]):
    target = make_request(size=box, fit="contain").target(size)
    assert all(new <= limit for new, limit in zip(target.size, box, strict=True))
    assert any(new == limit for new, limit in zip(target.size, box, strict=True))
    assert target.whole == target.size
    _assert_in_proportion(target)


@given(sizes, sizes)
def test_cover_fills_the_box_exactly_and_cuts_the_rest_evenly(size: tuple[int, int], box: tuple[int, int]):
    target = make_request(size=box, fit="cover").target(size)
    assert target.size == box
    assert any(whole == side for whole, side in zip(target.whole, box, strict=True))
    for whole, side, before in zip(target.whole, box, target.origin, strict=True):
        assert 0 <= whole - side - 2 * before <= 1
    _assert_in_proportion(target)


@given(sizes, sizes)
def test_stretch_has_the_size_of_the_box(size: tuple[int, int], box: tuple[int, int]):
    assert make_request(size=box, fit="stretch").target(size).size == box


@given(sizes, sides)
def test_one_side_is_exact_and_the_other_keeps_the_proportions(size: tuple[int, int], side: int):
    by_width, by_height = make_request(width=side).target(size), make_request(height=side).target(size)
    assert (by_width.size[0], by_height.size[1]) == (side, side)
    _assert_in_proportion(by_width)
    _assert_in_proportion(by_height)


def _assert_in_proportion(target: Target) -> None:
    factor = target.factors[0]
    assert target.factors == (factor, factor)
    for whole, old in zip(target.whole, target.source, strict=True):
        assert abs(whole - old * factor) <= Fraction(1, 2) or whole == 1


@pytest.mark.parametrize(
    ("scale", "size", "label"),
    [
        (None, (20, 10), "2"),
        ("3.7", (37, 19), "3.7"),
        (3.7, (37, 19), "3.7"),
        ("4x", (40, 20), "4"),
        ("2x3", (20, 15), "2x3"),
        ((2, 3), (20, 15), "2x3"),
        ("1.15", (12, 6), "1.15"),
        ("30", (300, 150), "30"),
        (".5", (5, 3), "0.5"),
        (0.001, (1, 1), "0.001"),
    ],
)
def test_scales_are_parsed_and_labelled(scale: str | float | None, size: tuple[int, int], label: str):
    target = make_request(scale=scale).target((10, 5))
    assert (target.size, target.label) == (size, label)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": "big"}, "scale 'big'.*3.7.*2x3"),
        ({"scale": "-2"}, "scale '-2'"),
        ({"scale": "0"}, "more than 0"),
        ({"scale": -1.0}, "more than 0"),
        ({"scale": float("nan")}, "finite"),
        ({"scale": float("inf")}, "finite"),
        ({"size": "12"}, "WIDTHxHEIGHT"),
        ({"size": "0x12"}, "at least 1"),
        ({"width": 0}, "width 0"),
        ({"height": -3}, "height -3"),
        ({"width": 30, "height": 20}, "size 30x20"),
        ({"scale": 2, "size": (3, 3)}, "scale and size together"),
        ({"scale": 2, "fit": "cover"}, "fit cover needs a size"),
        ({"size": (3, 3), "fit": "squeeze"}, "contain, cover, stretch"),
        ({"scale": 1e12}, "larger than any format"),
    ],
)
def test_an_invalid_request_is_refused(options: dict[str, object], words: str):
    with pytest.raises(SRNOError, match=words):
        make_request(**options).target((10, 5))  # type: ignore[arg-type]
