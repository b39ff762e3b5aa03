"""The table of packages in docs/architecture.md, checked against every import of the tree."""

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import srno

ROOT = Path(srno.__file__).parent
PLAN = Path(__file__).parents[1] / "docs" / "architecture.md"
SAME_THING_ONE_LEVEL_APART = {"__init__.py", "config.py", "view.py", "evaluate.py", "export.py"}
"""File names that may occur twice: a package's own part of a base module, or a command and what it calls."""

NAMES_OF_SEVERAL_TYPES = {"Compression", "Kind", "Needs", "Pixels", "Precision", "Size", "State"}
"""Type names that still occur twice: a class and an alias, or aliases of different types."""


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below srno."""
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.rglob("*.py")}


def imports(path: Path) -> set[str]:
    """Dotted names below srno that a file imports anywhere, inside functions and for type checkers included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "srno":
                found |= {alias.name for alias in node.names}
            elif node.module and node.module.startswith("srno."):
                found.add(node.module.removeprefix("srno."))
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("srno.") for alias in node.names if alias.name.startswith("srno.")}
    return found


def package_of(name: str) -> str:
    """`field.engine` → `field`; modules directly below srno are their own."""
    return name.partition(".")[0]


def package_plan() -> tuple[set[str], dict[str, set[str] | None]]:
    """The base modules, and for each package what it knows of; None for everything."""
    rows = [line.split("|")[1:-1] for line in PLAN.read_text().splitlines() if line.startswith("| `")]
    base = {name.removesuffix(".py") for name in re.findall(r"`(\w+\.py)`", rows[0][0])}
    plan: dict[str, set[str] | None] = {}
    for names, _, known in rows[1:]:
        words = known.strip()
        for name in re.findall(r"`(\w+)(?:/|\.py)`", names):
            plan[name] = None if words == "everything" else set(re.findall(r"\w+", words))
    return base, plan


def test_every_package_is_in_the_plan():
    base, plan = package_plan()
    packages = {package_of(name) for name in modules()} - {"__init__", "__main__", "weights", "examples"}
    assert packages == base | plan.keys()


def test_packages_import_only_what_the_plan_allows():
    base, plan = package_plan()
    edges: dict[str, set[str]] = defaultdict(set)
    for name, path in modules().items():
        own = package_of(name)
        if own not in ("__init__", "__main__", "weights"):
            edges[own] |= {package_of(other) for other in imports(path)} - {own}
    for own, found in edges.items():
        if own in base:
            assert found <= base, f"{own}.py imports {sorted(found - base)}"
        elif (known := plan[own]) is not None:
            assert found - base <= known, f"{own}/ imports {sorted(found - base - known)}"
            assert known <= found - base, f"{own}/ no longer imports {sorted(known - found)}; correct the plan"


def test_the_plan_has_no_cycle():
    _, plan = package_plan()
    left = {name: set(known) for name, known in plan.items() if known is not None}
    while left:
        free = {name for name, known in left.items() if not known & left.keys()}
        assert free, f"cycle among {sorted(left)}"
        left = {name: known for name, known in left.items() if name not in free}


def test_no_two_files_share_a_name():
    counts = Counter(path.name for path in modules().values())
    assert {name for name, count in counts.items() if count > 1} <= SAME_THING_ONE_LEVEL_APART


def types_of(path: Path) -> set[str]:
    """Names of the classes and type aliases of a module: `X: TypeAlias = …` and `Xyz = Generic[…]`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript()) if name != name.upper():
                names.add(name)
            case _:
                pass
    return names


def test_no_two_types_share_a_name():
    homes: dict[str, list[str]] = defaultdict(list)
    for module, path in modules().items():
        for name in types_of(path):
            homes[name].append(module)
    shared = {name: where for name, where in homes.items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if name not in NAMES_OF_SEVERAL_TYPES} == {}


def journeys() -> list[str]:
    """The names in backticks of the journeys in the docs, in order: `package.module.function` below srno."""
    text = PLAN.read_text()
    section = text[text.index("One picture, ") : text.index("## Decisions")]
    return [name for name in re.findall(r"`([\w.]+)`", section) if "." in name]


@pytest.mark.parametrize("name", sorted(set(journeys())))
def test_journeys_name_what_exists(name: str):
    parts = name.split(".")
    depth = next(n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in modules())
    found = importlib.import_module("srno." + ".".join(parts[:depth]))
    for part in parts[depth:]:
        found = getattr(found, part)


@pytest.mark.parametrize("journey", ["upscale", "train", "tile"])
def test_the_stack_of_a_journey_is_that_of_the_docs(journey: str):
    tool = Path(__file__).parents[1] / "tools" / "count_hops.py"
    done = subprocess.run([sys.executable, tool, journey, "-v"], capture_output=True, text=True, check=True)
    counted, _, rest = done.stdout.partition("\n")
    stack = [line.replace(".py: ", ".").replace("/", ".") for line in rest.partition("\n\n")[2].split("\n") if line]
    stack = [name for name in stack if "<lambda>" not in name]
    files, frames = (int(number) for number in re.findall(r"\d+", counted))
    assert f"| `{journey}` | {files} | {frames} |" in PLAN.read_text()
    named = iter(journeys())
    assert stack
    assert [name for name in stack if name not in named] == []
