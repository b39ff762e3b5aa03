"""torch.hub entry points: torch.hub.load("OWNER/srno", "srno", "light") gives a model in evaluation mode."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent / "src"))

from srno.checkpoints.build import create_model
from srno.checkpoints.catalogue import load

if TYPE_CHECKING:
    from srno.operator.model import Model

dependencies = ["torch", "numpy", "PIL", "pyvips", "safetensors"]


def srno(name: str = "default") -> "Model":
    """A shipped model, or a checkpoint by its path, ready to evaluate: model(image, size=(height, width))."""
    return load(name)


def srno_preset(name: str = "light") -> "Model":
    """A preset of any system with fresh weights, to be trained."""
    return create_model(name)
