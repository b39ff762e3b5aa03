"""Commands as a user types them, on small sets of pictures and with small models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from command_runs import run
from rivals.rival_models import CONFIGS as RIVALS
from small_models import CONFIGS, random_model
from srno.checkpoints.native import Card, Checkpoint, write_checkpoint
from srno.config import ModelConfig
from srno.operator.model import Model
from srno.operator.srno import SRNO


def run_json(capsys: pytest.CaptureFixture[str], *tokens: str | Path) -> Any:
    code, out, err = run(capsys, *tokens, "--json")
    assert code == 0, err
    return json.loads(out)


def make_set(folder: Path, *sizes: tuple[int, int]) -> Path:
    """Make a set folder of smooth random pictures of (height, width)."""
    (folder / "HR").mkdir(parents=True)
    for index, (height, width) in enumerate(sizes):
        coarse = np.random.default_rng(index).integers(0, 256, (height // 4, width // 4, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        picture.save(folder / "HR" / f"{index}.png")
    return folder


def near_bilinear_model(name: str = "edsr", *, seed: int = 0) -> SRNO:
    """A small fp32 model whose output is close to bilinear, so that small differences show in the PSNR."""
    model = random_model(CONFIGS[name], seed=seed, dtype=torch.float32)
    with torch.no_grad():
        model.projection.rgb.weight.mul_(0.05)
        model.projection.rgb.bias.mul_(0.05)
    return model


def write_model(model: Model, path: Path) -> Path:
    write_checkpoint(Checkpoint(config=model.config, state=model.state_dict(), card=Card(name="test")), path)
    return path


def write_rival(name: str, path: Path, *, seed: int = 0) -> Path:
    return write_random(RIVALS[name], path, seed=seed)


def write_random(config: ModelConfig, path: Path, *, seed: int = 0) -> Path:
    model: Any = random_model(config, seed=seed, dtype=torch.float32)  # pyright: ignore[reportArgumentType]
    return write_model(model.float(), path)
