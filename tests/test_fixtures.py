"""The test suite's own data and hooks: what is committed equals what it was made from, and gaps are reported."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from parity_checkpoints import PARITY_FIXTURES, SYSTEMS, rebuild
from shared_data import SHARED_DATA

TESTS = Path(__file__).parent

MARKED = """
import pytest

@pytest.mark.benchmark_sets("eval/Set5")
@pytest.mark.parametrize("scale", [2, 3])
def test_scores(scale):
    pass

@pytest.mark.benchmark_sets("parity")
def test_parity():
    pass

def test_unmarked():
    pass
"""


@pytest.mark.benchmark_sets("parity")
@pytest.mark.parametrize("system", SYSTEMS)
def test_rebuilt_checkpoints_are_the_public_files(system: str) -> None:
    original, rebuilt = torch.load(SHARED_DATA / "parity" / f"{system}.pth", weights_only=True), rebuild(system)
    weights, rebuilt_weights = original["model"].pop("sd"), rebuilt["model"].pop("sd")
    assert rebuilt == original
    assert list(rebuilt_weights) == list(weights)
    for name, tensor in weights.items():
        assert torch.equal(rebuilt_weights[name], tensor), name


@pytest.mark.benchmark_sets("parity")
@pytest.mark.parametrize("system", SYSTEMS)
def test_committed_answers_are_the_public_ones(system: str) -> None:
    name = f"{system}.npz"
    assert (PARITY_FIXTURES / name).read_bytes() == (SHARED_DATA / "parity" / name).read_bytes()


def summary_of_marked_tests(root: Path) -> str:
    """The output of a run of `MARKED` in a repository at `root`, with this suite's hooks."""
    tests = root / "tests"
    tests.mkdir()
    for helper in ("conftest.py", "shared_data.py", "parity_checkpoints.py"):
        shutil.copy(TESTS / helper, tests / helper)
    shutil.copy(TESTS.parent / "pyproject.toml", root / "pyproject.toml")
    (tests / "test_marked.py").write_text(MARKED)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_tests_without_benchmark_sets_are_counted(tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    summary = summary_of_marked_tests(tmp_path / "clone")
    assert "3 tests left out: no benchmark sets beside the repository" in summary
    assert "1 passed, 3 skipped" in summary


def test_only_tests_of_missing_sets_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    (tmp_path / "shared" / "data" / "eval" / "Set5").mkdir(parents=True)
    summary = summary_of_marked_tests(tmp_path / "clone")
    assert "1 test left out: no benchmark sets beside the repository" in summary
    assert "3 passed, 1 skipped" in summary
