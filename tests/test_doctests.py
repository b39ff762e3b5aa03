"""The examples in docstrings run and print what they say."""

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import srno


def modules_with_examples() -> list[str]:
    """Modules of the package whose source has a prompt; no module is imported to find out."""
    names: list[str] = []
    for module in pkgutil.walk_packages(srno.__path__, "srno."):
        spec = module.module_finder.find_spec(module.name, None)
        if spec and spec.origin and ">>> " in Path(spec.origin).read_text(encoding="utf-8"):
            names.append(module.name)
    return names


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_a_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    results = doctest.testmod(import_module(name), verbose=False, report=True)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("name", [name for name in srno.__all__ if name != "__version__"])
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>> " in (getattr(srno, name).__doc__ or "")
