"""The package as a whole: what it imports, how fast it answers, what its front door says."""

import subprocess
import sys

import pytest

EXTRAS = {
    *("starlette", "uvicorn", "multipart", "python_multipart", "matplotlib", "tensorboard"),
    *("pytest", "hypothesis", "skimage", "scipy", "torchmetrics", "httpx2", "playwright"),
}

IMPORT_ALL = """
import importlib, importlib.abc, pkgutil, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {extras}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
import srno
names = [module.name for module in pkgutil.walk_packages(srno.__path__, "srno.") if module.name != "srno.__main__"]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def test_every_module_imports_with_core_dependencies_only():
    done = run_python(IMPORT_ALL.format(extras=EXTRAS))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_a_missing_extra_names_the_command_that_installs_it():
    from srno.errors import SRNOError, require

    with pytest.raises(SRNOError, match=r"pip install 'srno\[plot\]'"):
        require("a_module_that_nobody_has", "plot")


@pytest.mark.parametrize("code", ["import srno", "from srno.cli import make_app; make_app()"])
def test_the_front_door_does_not_import_torch(code: str):
    done = run_python(f"{code}; import sys; print('torch' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr


def test_help_imports_neither_torch_nor_numpy():
    """What makes a start slow is what it imports; the clock itself depends on what else the machine does."""
    code = "import sys; from srno.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    done = run_python(code + "print([name for name in ('torch', 'numpy', 'PIL', 'pyvips') if name in sys.modules])")
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_every_command_has_help():
    from srno.cli import COMMANDS

    for command in COMMANDS:
        done = subprocess.run(
            [sys.executable, "-m", "srno", command, "--help"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "Usage" in done.stdout


def test_public_names_are_all_there():
    import srno

    for name in srno.__all__:
        assert getattr(srno, name) is not None
    with pytest.raises(AttributeError):
        _ = srno.no_such_name
