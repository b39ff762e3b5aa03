"""Start a larger model from a smaller one, without changing the function that it computes."""

from srno.checkpoints.native import Checkpoint
from srno.config import ModelConfig
from srno.errors import SRNOError
from srno.operator.model import Model


def grow(checkpoint: Checkpoint, target: ModelConfig) -> Model:
    """A model of config `target` that computes what the checkpoint does; deeper encoders and wider d_z are allowed."""
    if checkpoint.config == target:
        return checkpoint.model().train()
    raise SRNOError("growing is not there yet")
