"""published.toml against the paper's source, value by value."""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from shared_data import SHARED_DATA
from srno.reproduce.published import load_published

PAPER = SHARED_DATA.parent / "docs" / "paper.tex"
LABELS = {
    "tab:1": "table1",
    "tab:2": "table2",
    "tab:flops": "costs",
    "tab:ab2": "table4",
    "tab:11": "suppl-div2k",
    "tab:22": "suppl-benchmark",
}
"""Labels of the tables in the source, and their names in published.toml."""
SETS = ("Set5", "Set14", "B100", "Urban100")
NUMBER_OF_VALUES = 319


def paper_tables() -> dict[str, list[list[str]]]:
    """Every table of the source as cells without markup, by its name in published.toml."""
    source = re.sub(r"(?<!\\)%.*", "", PAPER.read_text())
    tables: dict[str, list[list[str]]] = {}
    for body in re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", source, re.DOTALL):
        label = re.search(r"\\label\{(.+?)\}", body)
        assert label
        tabular = re.search(r"\\begin\{tabular\}\{[^}]*\}(.*)\\end\{tabular\}", body, re.DOTALL)
        assert tabular
        tables[LABELS[label[1]]] = [cells(row) for row in re.split(r"\\\\", tabular[1])]
    return tables


def cells(row: str) -> list[str]:
    row = re.sub(r"\\(?:hline|cline\{.*?\})|~?\\cite\{.*?\}|\(ours\)", "", row)
    row = re.sub(r"\\multi(?:row|column)\{\d+\}\{.*?\}\{(.*?)\}", r"\1", row)
    row = re.sub(r"\\textbf\{(.*?)\}", r"\1", row)
    return [" ".join(cell.split()) for cell in row.split("&")]


def paper_values() -> Iterator[tuple[str, str, str, tuple[float, ...]]]:
    """(table, set, method, values) of every row of the source."""
    for table, rows in paper_tables().items():
        sets = ["DIV2K" if table in ("table1", "suppl-div2k") else "Set14" if table == "table4" else ""]
        for row in rows:
            named = [cell for cell in row if cell in SETS]
            if named:
                sets = named
            row = [cell for cell in row if cell not in SETS]
            numbers = [float(cell) for cell in row if re.fullmatch(r"\d+(?:\.\d+)?", cell)]
            words = [cell for cell in row if cell and not re.fullmatch(r"\d+(?:\.\d+)?|-", cell)]
            if not numbers:
                continue
            (method,) = words
            half = len(numbers) // len(sets)
            for number, data in enumerate(sets):
                yield table, data, method, tuple(numbers[number * half : (number + 1) * half])


def published_values() -> Iterator[tuple[str, str, str, tuple[float, ...]]]:
    """The same from published.toml; the times of table 4 follow its decibels."""
    published = load_published()
    for name, table in published.tables.items():
        for data, rows in table.psnr.items():
            for method, values in rows.items():
                extra = (table.milliseconds[method],) if table.milliseconds else ()
                yield name, data, method, (*values, *extra)
    for method, cost in published.costs.items():
        yield "costs", "", method, (cost.parameters, cost.flops)


@pytest.mark.benchmark_sets("../docs/paper.tex")
def test_all_values_are_those_of_the_paper():
    theirs = {(table, data, method): values for table, data, method, values in paper_values()}
    ours = {(table, data, method): values for table, data, method, values in published_values()}
    assert sum(map(len, theirs.values())) == NUMBER_OF_VALUES
    assert ours == theirs


def test_the_file_has_no_more_values_than_the_paper_and_the_literature():
    raw: dict[str, Any] = tomllib.loads((files("srno.reproduce") / "published.toml").read_text())
    literature = sum(len(values) for values in raw["bicubic"].values())
    assert sum(len(values) for *_, values in published_values()) == NUMBER_OF_VALUES
    assert literature == 9


def test_cells_of_a_latex_row_are_read():
    row = r"\multirow{3}{*}{Set5} & EDSR-baseline-LTE~\cite{lee} & \textbf{38.03} & 34.48 & - "
    assert cells(row) == ["Set5", "EDSR-baseline-LTE", "38.03", "34.48", "-"]
