"""Fixtures of the commands' tests."""

from collections.abc import Callable
from pathlib import Path

import pytest
from scoring import make_set

from command_runs import run
from tiny_models import write_tiny


@pytest.fixture(autouse=True)
def temporary_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redirect the cache, so that the tests write nothing into the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[str, str]]:
    """Runs a command that cannot work, in a folder with a set of one picture; returns stdout and stderr."""
    monkeypatch.chdir(make_set(tmp_path / "set", (24, 28)))

    def usage_error(*tokens: str) -> tuple[str, str]:
        code, out, err = run(capsys, *tokens)
        assert code == 2
        return out, err

    return usage_error


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model in the folder above it."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_tiny(tmp_path / "tiny.safetensors")
    return folder
