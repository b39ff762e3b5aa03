from pathlib import Path

import pytest

from training.small_runs import make_pictures


@pytest.fixture(autouse=True)
def own_picture_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the decoded pictures of tests out of the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of four small pictures."""
    return make_pictures(tmp_path_factory.mktemp("pictures"))
