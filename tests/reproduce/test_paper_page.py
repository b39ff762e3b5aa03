"""docs/paper.md, row by row: complete, its files and names exist, its commands run, its thumbnails are small."""

import ast
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import srno
from command_runs import run
from shared_data import SHARED_DATA
from srno.cli import make_app

DOCS = Path(__file__).parents[2] / "docs"
PACKAGE = Path(srno.__file__).parent
PAPER = SHARED_DATA.parent / "docs" / "paper.tex"
LARGEST_THUMBNAIL = 12_500
EQUATIONS = [f"({number})" for number in range(1, 14)] + [f"(S{number})" for number in range(1, 11)]
TABLES = [f"Table {number}" for number in ("1", "2", "3", "4", "S1", "S2")]
FIGURES = [f"Figure {number}" for number in range(1, 10)] + [f"Figure S{number}" for number in range(1, 7)]


@dataclass(frozen=True)
class PaperRow:
    """A row of the page."""

    number: str
    file: str
    command: str
    here: str

    def __str__(self) -> str:
        return self.number


def rows() -> list[PaperRow]:
    lines = (DOCS / "paper.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    found = [row for row in cells if len(row) == 5 and re.match(r"\(|Table|Figure", row[0])]
    return [PaperRow(number, file, command, here) for number, _, file, command, here in found]


ROWS = rows()
COMMANDS = sorted({row.command.strip("`") for row in ROWS if row.command != "–"})


def test_every_number_has_a_row():
    assert [row.number for row in ROWS] == [*EQUATIONS, *TABLES, *FIGURES]


@pytest.mark.benchmark_sets("../docs/paper.tex")
def test_the_numbers_are_those_of_the_source():
    """LaTeX numbers each equation, each line of align, and each caption of a table or a figure."""
    source = re.sub(r"(?<!\\)%.*", "", PAPER.read_text())
    paper, supplement = source.split(r"\begin{appendices}")
    for part, prefix in ((paper, ""), (supplement, "S")):
        equations = len(re.findall(r"\\begin\{equation\}", part))
        for lines in re.findall(r"\\begin\{align\}(.*?)\\end\{align\}", part, re.DOTALL):
            equations += len(re.split(r"\\\\", lines))
        counts = {"equation": equations}
        for kind in ("table", "figure"):
            bodies = re.findall(rf"\\begin\{{{kind}\*?\}}(.*?)\\end\{{{kind}\*?\}}", part, re.DOTALL)
            counts[kind] = sum(r"\caption" in body for body in bodies)
        listed = {
            "equation": [number for number in EQUATIONS if number.startswith("(S") == bool(prefix)],
            "table": [number for number in TABLES if number.startswith("Table S") == bool(prefix)],
            "figure": [number for number in FIGURES if number.startswith("Figure S") == bool(prefix)],
        }
        assert counts == {kind: len(numbers) for kind, numbers in listed.items()}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_files_and_names_exist(row: PaperRow):
    entries = re.findall(r"`([\w/]+\.(?:py|toml))`(?: `(\w+)`)?", row.file)
    assert entries
    for file, name in entries:
        path = PACKAGE / file
        assert path.is_file(), file
        if name:
            kinds = ast.FunctionDef | ast.ClassDef
            defined = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)}
            assert name in defined, f"{file} has no {name}"


@pytest.mark.parametrize("row", [row for row in ROWS if row.here != "–"], ids=str)
def test_thumbnails_are_small_pictures(row: PaperRow):
    (name,) = re.findall(r"!\[.+\]\((.+)\)", row.here)
    assert (DOCS / name).stat().st_size < LARGEST_THUMBNAIL
    with Image.open(DOCS / name) as picture:
        assert len(np.unique(np.asarray(picture.convert("L")))) > 20


@pytest.mark.parametrize("row", [row for row in ROWS if re.match("Table|Figure", row.number)], ids=str)
def test_every_table_and_figure_has_a_command(row: PaperRow):
    assert row.command.startswith("`srno ")


def test_every_thumbnail_is_used():
    shown = {name for row in ROWS for name in re.findall(r"\(paper/(.+)\)", row.here)}
    assert {path.name for path in (DOCS / "paper").iterdir()} == shown


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with small sets in DATA and an empty folder CHECKPOINTS."""
    (tmp_path / "CHECKPOINTS").mkdir()
    with Image.open(PACKAGE / "examples" / "cat.png") as cat:
        picture = cat.convert("RGB").resize((124, 120))
    numbers = {"Set5/HR": (3,), "Set14/HR": (11, 12, 13, 14), "Urban100/HR": (1,)}
    for name, listed in numbers.items():
        (tmp_path / "DATA" / name).mkdir(parents=True)
        for number in listed:
            picture.save(tmp_path / "DATA" / name / f"img_{number:03}.png")
    (tmp_path / "DATA" / "DIV2K" / "DIV2K_valid_HR").mkdir(parents=True)
    shutil.copy(
        tmp_path / "DATA" / "Set5" / "HR" / "img_003.png", tmp_path / "DATA" / "DIV2K" / "DIV2K_valid_HR" / "0801.png"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run_on_small_pictures(command: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    """Training is only parsed: tests/training runs it."""
    words = shlex.split(command)[1:]
    make_app().parse_args(words, exit_on_error=False, print_error=False)
    if words[0] == "train":
        return
    threads = [] if words[0] == "profile" or words[1] in ("table3", "fig-patterns") else ["--threads", "1"]
    code, out, err = run(capsys, *words, *threads)
    assert code == 0, err
    drawn = sorted(path.name for path in folder.glob("*.png"))
    # without checkpoints there is nothing to draw but the commands that train them
    only_prints = words[0] == "profile" or words[1].startswith(("table", "suppl")) or words[1] == "fig-samples"
    assert out if only_prints else drawn == [f"{words[1]}.png"]
