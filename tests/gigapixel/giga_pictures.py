"""Pictures, models and requests for the tests of large pictures."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import torch

from small_models import CONFIGS, random_model
from srno.gigapixel.prepare import LargeRequest, LargeSettings
from srno.imaging.picture import Picture
from srno.operator.model import Model
from srno.upscaling.sizes import Request, Target

STREAMED = LargeSettings(tile=16, side=32, compression="none")


def model_of(name: str) -> Model:
    return random_model(CONFIGS[name], dtype=torch.float32)


def random_picture(size: tuple[int, int], channels: int = 3, bits: int = 16, seed: int = 0) -> Picture:
    """A picture of (width, height) with smooth noise; where there is alpha, a corner is hidden."""
    generator = np.random.default_rng(seed)
    dtype = np.uint16 if bits == 16 else np.uint8
    samples = generator.integers(0, np.iinfo(dtype).max, (size[1], size[0], channels), dtype, endpoint=True)
    colours = channels - (channels in (2, 4))
    alpha = samples[..., colours].copy() if colours < channels else None
    if alpha is not None:
        alpha[: size[1] // 2, : size[0] // 2] = 0
    return Picture(colour=samples[..., :colours], alpha=alpha)


def request_for(source: Path, output: Path, target: Target, **options: object) -> LargeRequest:
    return LargeRequest(
        source=source,
        output=output,
        whole=(target.whole[1], target.whole[0]),
        origin=(target.origin[1], target.origin[0]),
        size=(target.size[1], target.size[0]),
        memory="8G",
        **{"format": "TIFF", "settings": STREAMED, **options},  # pyright: ignore[reportArgumentType]
    )


def scaled(size: tuple[int, int], factor: str) -> Target:
    return Request(factors=(Fraction(factor), Fraction(factor))).target(size)
