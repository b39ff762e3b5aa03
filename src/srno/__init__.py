"""Super-Resolution Neural Operator: a picture is a function; lift it once, evaluate it anywhere."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from srno._version import __version__

if TYPE_CHECKING:
    from srno.checkpoints.build import create_model
    from srno.checkpoints.catalogue import list_models, load, save
    from srno.checkpoints.native import Card
    from srno.config import EDSRConfig, RDNConfig, SRNOConfig, preset
    from srno.errors import SRNOError
    from srno.field.field import Field, lift
    from srno.operator.srno import SRNO
    from srno.training.config import TrainConfig
    from srno.training.loop import train
    from srno.upscaling.api import upscale
    from srno.upscaling.upscaler import Upscaler

__all__ = [
    "SRNO",
    "Card",
    "EDSRConfig",
    "Field",
    "RDNConfig",
    "SRNOConfig",
    "SRNOError",
    "TrainConfig",
    "Upscaler",
    "__version__",
    "create_model",
    "lift",
    "list_models",
    "load",
    "preset",
    "save",
    "train",
    "upscale",
]

_HOMES = {
    "SRNO": "srno.operator.srno",
    "Card": "srno.checkpoints.native",
    "EDSRConfig": "srno.config",
    "Field": "srno.field.field",
    "RDNConfig": "srno.config",
    "SRNOConfig": "srno.config",
    "SRNOError": "srno.errors",
    "TrainConfig": "srno.training.config",
    "Upscaler": "srno.upscaling.upscaler",
    "create_model": "srno.checkpoints.build",
    "lift": "srno.field.field",
    "list_models": "srno.checkpoints.catalogue",
    "load": "srno.checkpoints.catalogue",
    "preset": "srno.config",
    "save": "srno.checkpoints.catalogue",
    "train": "srno.training.loop",
    "upscale": "srno.upscaling.api",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import srno` alone needs no torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'srno' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
