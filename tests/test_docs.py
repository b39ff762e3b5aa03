"""The documentation works: its commands and Python blocks run on tiny pictures, and what cannot run is parsed.

A command runs through `srno.cli.main` unless `ONLY_PARSED` names it, and a Python block runs unless `ONLY_COMPILED`
names it, each with the reason. A block of any other kind has to be in `OTHER_BLOCKS`.
"""

import importlib
import io
import json
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cyclopts import CycloptsError
from PIL import Image

import srno
from command_runs import exit_code
from doc_blocks import SHELLS, Block, Command, find_blocks, find_commands, find_commands_in_tables, parse_line
from parity_checkpoints import rebuild
from srno.cli import make_app
from srno.errors import require
from srno.training.config import TrainConfig
from srno.training.run import to_json

ROOT = Path(__file__).parents[1]
PAGES = {page.name: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]}

ONLY_PARSED = {
    "srno train": "it trains for minutes to hours; tests/commands/test_train.py runs it",
    "srno upscale photo.jpg -s 3 -m runs/small": "it needs the run that the command before it trains",
    "srno serve": "it serves until Ctrl-C; tests/server/test_running.py runs it",
    "srno bench": "it takes minutes; tests/commands/test_bench_command.py runs it",
    "srno reproduce": "it needs DIV2K, checkpoints or hours; tests/commands/test_reproduce_command.py runs it",
    "srno evaluate bicubic --protocol div2k": "it needs DIV2K",
    "srno evaluate edsr_x2.pt": "it needs the weights of the original EDSR",
    "srno upscale scan.tif -s 4 -o scan_4x.ome.zarr --cluster": "a cluster takes half a minute to start; "
    "tests/gigapixel/test_on_a_cluster.py has one",
    "srno compare SRNO=a.safetensors": "it needs the reader's checkpoints",
    "srno compare A.safetensors": "it needs the reader's checkpoints",
}
"""Beginnings of srno commands whose arguments are bound without a call, and why."""

ONLY_COMPILED = {
    "srno.train(": "it trains for minutes to hours; the doctest of srno.train runs it",
    "scheduler.json": "it waits for workers",
    "SLURMCluster(": "it needs SLURM",
}
"""Parts of Python blocks that are compiled without being run, and why."""

OTHER_BLOCKS = {
    ("architecture.md", "indented"): "a diagram",
    ("evaluation.md", "indented"): "the layout of a folder",
    ("export.md", "cpp"): "tools/run_snippets.py compiles and runs it",
    ("export.md", "js"): "tools/run_snippets.py runs it",
    ("gigapixel.md", "text"): "a log",
    ("theory.md", "indented"): "equations",
}
"""Blocks that are neither commands nor Python nor JSON, by page and language, and what they are."""

ELLIPSIS = {"train": ("--data", "DIR", "--out", "RUN", "--minutes", "60")}
"""What a … at the end of a command of this name stands for."""

SMALLER = {
    "3840": "96",
    "2160": "54",
    "1920": "48",
    "1080": "27",
    "400": "40",
    # A window costs the integral over the whole picture at its zoom.
    "(512, 512)": "(16, 16)",
    "(64, 64)": "(8, 8)",
}
"""Output sizes of the documentation, and the sizes that replace them to keep the test short."""

PICTURE_SIZE = (24, 16)

BLOCKS = [block for name, text in PAGES.items() for block in find_blocks(name, text)]
COMMANDS = [
    *(command for block in BLOCKS if block.language in SHELLS for command in find_commands(block)),
    *find_commands_in_tables("README.md", PAGES["README.md"], ("srno",)),
    # Tables of other pages abbreviate; only their training commands are whole.
    *(it for name, text in PAGES.items() for it in find_commands_in_tables(name, text, ("torchrun", "srno train"))),
]
OWN_COMMANDS = [command for command in COMMANDS if command.words[0] == "srno"]
OTHER_COMMANDS = [command for command in COMMANDS if command.words[0] != "srno"]
PYTHON_PAGES = sorted({block.page for block in BLOCKS if block.language == "python"})


def runs(command: Command) -> bool:
    return not any(command.text.startswith(beginning) for beginning in ONLY_PARSED)


def smaller(text: str) -> str:
    for large, small in SMALLER.items():
        text = re.sub(rf"(?<!\d){re.escape(large)}(?!\d)", small, text)
    return text


def bind(words: tuple[str, ...]) -> None:
    """Bind the arguments of `srno WORDS` to the command's parameters; anything wrong raises."""
    whole = [*words[:-1], *ELLIPSIS[words[0]]] if words[-1] == "…" else words
    make_app().parse_args(whole, exit_on_error=False, print_error=False)


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that the documentation names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with Image.open(Path(srno.__file__).parent / "examples" / "cat.png") as cat:
        picture = cat.convert("RGB").resize(PICTURE_SIZE)
    for name in (
        "cat.jpg",
        "photo.jpg",
        "logo.png",
        "thumbs.png",
        "scan.tif",
        "scan.png",
        "photos/1.jpg",
        "photos/trip/2.png",
    ):
        save(picture, tmp_path / name)
    save(picture, tmp_path / "scans" / "old" / "3.tif")
    for name in ("Set5", "Set14"):
        save(picture.resize((72, 48)), tmp_path / name / "HR" / "img_001.png")
    for name in ("public.pth", "model.pth"):
        torch.save(rebuild("sronet"), tmp_path / name)
    for name in ("light", "small"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.json").write_text(to_json(TrainConfig(data=(Path("DIR"),), steps=1)))
    return tmp_path


def save(picture: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)


@pytest.mark.parametrize("command", [it for it in OWN_COMMANDS if runs(it)], ids=str)
def test_a_command_runs(
    command: Command, folder: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(folder.rglob("*"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "logo.png").read_bytes())))
    code = exit_code(*(smaller(word) for word in command.words[1:]))
    out, err = capfdbinary.readouterr()
    assert code == 0, err.decode()
    if command.stdout:
        assert Image.open(io.BytesIO(out)).width > PICTURE_SIZE[0]
    else:
        assert set(folder.rglob("*")) > before or (out and command.words[1] != "upscale")


@pytest.mark.parametrize("command", [it for it in OWN_COMMANDS if not runs(it)], ids=str)
def test_a_command_that_cannot_run_here_parses(command: Command, folder: Path) -> None:
    bind(command.words[1:])


def check_make(words: tuple[str, ...]) -> None:
    targets = re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(words[1:]) <= set(targets)


def check_pip(words: tuple[str, ...]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for listed in re.findall(r"(?:srno|\.)\[(.+?)\]", " ".join(words)):
        assert set(listed.split(",")) <= set(extras)


def check_python(words: tuple[str, ...]) -> None:
    compile((ROOT / words[1]).read_text(), words[1], "exec")


def check_torchrun(words: tuple[str, ...]) -> None:
    bind(words[words.index("srno") + 1 :])


def check_dask_variable(setting: str) -> None:
    """A variable that Dask reads, and a setting that Dask has."""
    import distributed  # noqa: F401 (adds its settings)
    from dask import config

    name = setting.partition("=")[0].removeprefix("DASK_").lower().replace("__", ".").replace("_", "-")
    assert config.get(name, None) is not None, f"{setting}: Dask has no setting {name}"


def check_dask(words: tuple[str, ...]) -> None:
    known = require("distributed.cli", "cluster")
    command = importlib.import_module(f"{known.__name__}.dask_{words[1]}").main
    command.make_context("dask", [word for word in words[2:] if word not in ("…", "&")])


OTHER_PROGRAMS: dict[str, tuple[str, Callable[[tuple[str, ...]], None]]] = {
    "make": ("it installs packages and runs this test", check_make),
    "pip": ("it installs packages", check_pip),
    "python": ("benchmarks and examples take minutes", check_python),
    "torchrun": ("it starts processes on GPUs", check_torchrun),
    "curl": ("it needs a network", lambda _: None),
    "dask": ("it serves until Ctrl-C", check_dask),
    "export": ("it sets variables of Dask", lambda words: check_dask_variable(words[1])),
    "salloc": ("it needs a cluster", lambda _: None),
    "srun": ("it needs a cluster", lambda words: check_dask(words[1:])),
}
"""Programs that are not started, why, and what is checked instead."""


@pytest.mark.parametrize("command", OTHER_COMMANDS, ids=str)
def test_files_and_options_of_other_programs_exist(command: Command, folder: Path) -> None:
    assert command.words[0] in OTHER_PROGRAMS, f"{command}: add the program to OTHER_PROGRAMS"
    OTHER_PROGRAMS[command.words[0]][1](command.words)


def run_block(block: Block, names: dict[str, object]) -> None:
    # Empty lines in front give a traceback the line numbers of the page.
    code = compile("\n" * (block.line - 1) + smaller(block.text), block.page, "exec")
    if not any(part in block.text for part in ONLY_COMPILED):
        exec(code, names)


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_python_blocks_run_in_order(page: str, folder: Path) -> None:
    """Blocks of a page share their names, and need no others."""
    names: dict[str, object] = {}
    for block in BLOCKS:
        if block.page == page and block.language == "python":
            run_block(block, names)


@pytest.mark.parametrize("block", [it for it in BLOCKS if it.language not in (*SHELLS, "python")], ids=str)
def test_other_blocks_are_listed(block: Block) -> None:
    """JSON parses; anything else that is neither a command nor Python has to be listed."""
    if block.language == "json":
        json.loads(block.text)
    else:
        assert (block.page, block.language) in OTHER_BLOCKS, f"{block} ({block.language}): add it to OTHER_BLOCKS"


def test_every_listed_exception_is_used() -> None:
    python = [block.text for block in BLOCKS if block.language == "python"]
    unused = [start for start in ONLY_PARSED if not any(it.text.startswith(start) for it in OWN_COMMANDS)]
    unused += [part for part in ONLY_COMPILED if not any(part in text for text in python)]
    unused += [f"{page} {language}" for page, language in OTHER_BLOCKS.keys() - {(b.page, b.language) for b in BLOCKS}]
    assert not unused


EXAMPLE_PAGE = """# Title

    srno upscale cat.jpg -s 4     # a comment
    srno train --data DIR \\
        --out RUN

Text

    $ srno upscale photos -r
    2 written

    S = P ∘ L

- item
    still the item

```python
x = 1
```

| `OMP_NUM_THREADS=1 torchrun -m srno train --data DIR` | `--flag` |
"""


def test_blocks_and_commands_are_found() -> None:
    shell, console, equation, python = find_blocks("page.md", EXAMPLE_PAGE)
    assert [command.text for command in find_commands(shell)] == [
        "srno upscale cat.jpg -s 4",
        "srno train --data DIR --out RUN",
    ]
    assert [command.text for command in find_commands(console)] == ["srno upscale photos -r"]
    assert (equation.language, equation.line) == ("indented", 12)
    assert (python.language, python.line, python.text) == ("python", 18, "x = 1")
    (distributed,) = find_commands_in_tables("page.md", EXAMPLE_PAGE, ("srno", "torchrun"))
    assert distributed.text == "torchrun -m srno train --data DIR"


def test_pipelines_are_taken_apart() -> None:
    curl, ours = parse_line("page.md:1", "curl -s https://example.org/a.png | srno upscale - -s 2.5 > 'b.png'")
    assert curl.words == ("curl", "-s", "https://example.org/a.png")
    assert (ours.words, ours.stdout) == (("srno", "upscale", "-", "-s", "2.5"), "b.png")
    (redirected,) = parse_line("page.md:2", "srno upscale - < a.png > b.png")
    assert (redirected.words, redirected.stdout) == (("srno", "upscale", "-"), "b.png")


@pytest.mark.parametrize("words", ["models --jsno", "serve --port x", "upscael cat.jpg", "evaluate default"])
def test_a_wrong_command_does_not_parse(words: str) -> None:
    with pytest.raises(CycloptsError):
        bind(tuple(words.split()))
