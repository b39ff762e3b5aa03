"""docs/theory.md: every equation of the paper is there, and its counts are those of the code."""

import re
from pathlib import Path

import pytest

from srno.config import SRNOConfig, preset
from srno.evaluation.cost import profile

TEXT = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
EQUATIONS = [str(number) for number in range(1, 14)] + [f"S{number}" for number in range(1, 11)]
COSTS_TABLE = TEXT[TEXT.index("| | equations as written") :].partition("\n\n")[0]
COSTS = [line.strip("| ").split(" | ") for line in COSTS_TABLE.splitlines()[2:]]


@pytest.mark.parametrize("number", EQUATIONS)
def test_every_equation_is_named(number: str):
    assert re.search(rf"\((?:\d+, )*{number}(?:, \d+)*\)", TEXT)


def multiply_adds(cell: str, r: int) -> float:
    """The value of a cell such as `2 · 131,072`, `65,536 / r²` or `–`."""
    if cell == "–":
        return 0
    expression = cell.strip("*").replace(",", "").replace("·", "*").replace("r²", str(r * r))
    assert re.fullmatch(r"[\d */]+", expression), cell
    return eval(expression)


@pytest.mark.parametrize("r", [2, 4])
def test_the_multiply_adds_sum_to_the_totals(r: int):
    parts = [row for row in COSTS if not row[0].startswith("sum")]
    (sums,) = [row for row in COSTS if row[0] == f"sum at ×{r}"]
    for column in (1, 2, 3):
        assert multiply_adds(sums[column], r) == sum(multiply_adds(row[column], r) for row in parts)


def test_the_cost_of_the_equations_equals_that_of_profile():
    config = preset("edsr-baseline")
    assert isinstance(config, SRNOConfig)
    flops = sum(cost.flops for name, cost in profile(config).parts.items() if name != "encoder")
    (stated,) = [row[1] for row in COSTS if row[0] == "sum at ×2"]
    assert multiply_adds(stated, 2) == flops / 2 / 128**2
    assert f"{flops / 1e9:.2f} GFLOPs" in TEXT
