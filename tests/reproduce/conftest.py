"""Redirect the cache, so that the tests write nothing into the user's cache."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def temporary_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder
