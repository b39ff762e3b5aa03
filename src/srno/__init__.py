"""Super-Resolution Neural Operator: a picture is a function; lift it once, evaluate it anywhere."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from srno._version import __version__

if TYPE_CHECKING:
    from srno.checkpoints.catalogue import list_models, load
    from srno.config import SRNOConfig, preset
    from srno.errors import SRNOError
    from srno.inference.field import Field
    from srno.inference.upscale import upscale
    from srno.operator.srno import SRNO

__all__ = [
    "SRNO",
    "Field",
    "SRNOConfig",
    "SRNOError",
    "__version__",
    "list_models",
    "load",
    "preset",
    "upscale",
]

_HOMES = {
    "SRNO": "srno.operator.srno",
    "SRNOConfig": "srno.config",
    "SRNOError": "srno.errors",
    "Field": "srno.inference.field",
    "list_models": "srno.checkpoints.catalogue",
    "load": "srno.checkpoints.catalogue",
    "preset": "srno.config",
    "upscale": "srno.inference.upscale",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import srno` alone needs no torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'srno' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
