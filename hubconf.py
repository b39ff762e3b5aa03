"""torch.hub entry points: torch.hub.load("OWNER/srno", "srno", "light") gives a model in evaluation mode."""

import sys as _sys
from pathlib import Path as _Path
from typing import TYPE_CHECKING

_sys.path.insert(0, str(_Path(__file__).parent / "src"))

# torch.hub lists every public callable of this file as a model
from srno.checkpoints.build import create_model as _create_model
from srno.checkpoints.catalogue import load as _load

if TYPE_CHECKING:
    from srno.operator.model import Model

dependencies = ["torch", "numpy", "safetensors"]


def srno(name: str = "default") -> "Model":
    """A shipped model, or a checkpoint by its path, ready to evaluate: model(image, size=(height, width))."""
    return _load(name)


def srno_preset(name: str = "light") -> "Model":
    """A preset of any system with fresh weights, to be trained."""
    return _create_model(name)
