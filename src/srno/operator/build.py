"""From a config to the model that it describes."""

from srno.config import ModelConfig
from srno.operator.model import Model
from srno.operator.srno import SRNO


def build(config: ModelConfig) -> Model:
    """A model with fresh weights."""
    return SRNO(config)
