"""The package as a whole: what it imports, its command line and its public names."""

import subprocess
import sys
from pathlib import Path

import pytest

import srno

EXTRAS = {
    *("starlette", "uvicorn", "multipart", "python_multipart", "segno", "matplotlib", "tensorboard"),
    *("onnx", "onnxscript", "onnxruntime"),
    *("pillow_heif", "pillow_jxl"),
    *("dask", "distributed", "zarr", "numcodecs"),
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
print(*names)
"""


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def modules_on_disk() -> set[str]:
    """Every module and package below srno by its full name, but for `__main__`, which would run the command."""
    package = Path(srno.__file__).parent
    files = {path.relative_to(package.parent).with_suffix("") for path in package.rglob("*.py")}
    names = {".".join(path.parts).removesuffix(".__init__") for path in files}
    return names - {"srno", "srno.__main__"}


def test_every_module_imports_with_core_dependencies_only():
    done = run_python(IMPORT_ALL.format(extras=EXTRAS))
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == modules_on_disk()


def test_a_missing_extra_names_the_command_that_installs_it():
    from srno.errors import SRNOError, require

    with pytest.raises(SRNOError, match=r"pip install 'srno\[plot\]'"):
        require("a_module_that_nobody_has", "plot")


@pytest.mark.parametrize("code", ["import srno", "from srno.cli import make_app; make_app()"])
def test_neither_the_package_nor_the_command_line_imports_torch(code: str):
    done = run_python(f"{code}; import sys; print('torch' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr


def test_help_imports_neither_torch_nor_numpy():
    """Imports decide how long a start takes, and unlike a measured time they do not depend on the machine's load."""
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
    for name in srno.__all__:
        assert getattr(srno, name) is not None
    with pytest.raises(AttributeError):
        _ = srno.no_such_name
