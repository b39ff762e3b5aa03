"""What tests of several parts share; its place also makes the helper modules beside it importable."""

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).parents[1].parent / "shared" / "data"


@pytest.fixture
def parity_folder() -> Path:
    """Answers of the public implementations; skips where they are missing."""
    folder = SHARED_DATA / "parity"
    if not folder.is_dir():
        pytest.skip("no parity data beside the repository")
    return folder
