"""Fixtures and hooks for all tests; its place also makes the helper modules beside it importable."""

from pathlib import Path

import pytest
import torch
from hypothesis import settings

from parity_checkpoints import SYSTEMS, rebuild
from shared_data import SHARED_DATA

settings.register_profile("srno", deadline=None)  # how long an example takes depends on the machine's load
settings.load_profile("srno")

MISSING_SETS = "no benchmark sets beside the repository"


def missing_data(item: pytest.Item) -> list[str]:
    """Paths below the shared data that a test's `benchmark_sets` markers name and that are not there."""
    named = [name for marker in item.iter_markers("benchmark_sets") for name in marker.args]
    return [name for name in named if not (SHARED_DATA / name).exists()]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests whose benchmark sets are missing."""
    for item in items:
        if missing := missing_data(item):
            item.add_marker(pytest.mark.skip(reason=f"{MISSING_SETS}: {', '.join(missing)}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report how many tests were left out, so that a green run without the sets does not look complete."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    count = sum(MISSING_SETS in reason for reason in skipped)
    if count:
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.write_line(f"{tests} left out: {MISSING_SETS} ({SHARED_DATA})", yellow=True)


@pytest.fixture(autouse=True)
def seed_torch() -> None:
    """Give every test the same random numbers, whatever ran before it."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def fp32_by_default(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Make `auto` mean fp32, so that the same numbers come out on every machine; `machine_precision` undoes it."""
    if "machine_precision" not in request.keywords:
        monkeypatch.setattr("srno.machine._cpu_precision", lambda: "fp32")


@pytest.fixture(scope="session")
def parity_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of the public implementations (`sronet.pth` …), written as those write them."""
    folder = tmp_path_factory.mktemp("parity")
    for system in SYSTEMS:
        torch.save(rebuild(system), folder / f"{system}.pth")
    return folder
