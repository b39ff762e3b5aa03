"""A short part of `make fuzz`: other people's files and requests never crash, hang, run code or leave files."""

import numpy as np
import pytest

from fuzz.kinds import KINDS
from fuzz.running import fuzz
from fuzz.worker import make_input

INPUTS = 60


@pytest.mark.parametrize("kind", KINDS)
def test_every_input_is_accepted_or_refused_in_one_line(kind: str):
    if kind in ("heif", "jxl"):
        pytest.importorskip({"heif": "pillow_heif", "jxl": "pillow_jxl"}[kind])
    result = fuzz(kind, seed=1, count=INPUTS)
    assert result.problems == {}
    assert result.accepted + result.refused == result.inputs == INPUTS


def test_an_input_is_a_function_of_its_number():
    kind, seeds = KINDS["pnm"], [b"P5 2 2 255 abcd", b"P2 1 1 9 5"]
    inputs = [make_input(kind, seeds, 3, number) for number in range(50)]
    assert inputs == [make_input(kind, seeds, 3, number) for number in range(50)]
    assert len(set(inputs)) > 40
    assert np.mean([each in seeds for each in inputs]) < 0.2
