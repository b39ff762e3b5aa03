"""The smallest complete models, in memory and as files."""

from pathlib import Path

import torch

from small_models import random_model
from srno.checkpoints.native import Card, Checkpoint, write_checkpoint
from srno.config import EDSRConfig, SRNOConfig
from srno.operator.srno import SRNO

TINY = SRNOConfig(encoder=EDSRConfig(channels=8, blocks=1), d_z=16, heads=2, iterations=1, projection_width=16)


def tiny_model(*, strength: float = 0.0) -> SRNO:
    """A model that adds `strength` times noise to the bilinear skip: with 0 its output is plain bilinear."""
    model = random_model(TINY, seed=7, dtype=torch.float32)
    model.projection.rgb.weight.data *= strength
    model.projection.rgb.bias.data *= strength
    return model


def write_tiny(path: Path, *, strength: float = 0.0) -> Path:
    """Write the tiny model as a checkpoint."""
    model = tiny_model(strength=strength)
    write_checkpoint(Checkpoint(config=TINY, state=model.state_dict(), card=Card(name="tiny")), path)
    return path
