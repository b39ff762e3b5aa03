"""Redirect the cache, so that the tests write nothing into the user's cache."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def temporary_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
