"""The pictures that come with the package."""

from importlib.resources import files
from pathlib import Path

from srno.imaging.formats import CAPABILITIES


def bundled() -> dict[str, Path]:
    """File names and files, in alphabetical order."""
    folder = Path(str(files("srno"))) / "examples"
    suffixes = {suffix for capability in CAPABILITIES.values() for suffix in capability.suffixes}
    return {path.name: path for path in sorted(folder.glob("*")) if path.suffix.lower() in suffixes}
