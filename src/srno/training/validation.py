"""Validation: scores on pictures that are not trained on, which select the best weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from srno.config import ModelConfig
from srno.evaluation.datasets import PictureSet, load_pair, reason_to_skip
from srno.evaluation.evaluate import bicubic, evaluate
from srno.evaluation.protocols import Protocol, Scale, named_protocol
from srno.operator.model import Model
from srno.training.config import TrainConfig
from srno.upscaling.upscaler import Upscaler


def scales_of(config: ModelConfig) -> tuple[Scale, ...]:
    """Validation scales: the published factors, or the only factor of the model."""
    factors = (2, 3, 4) if config.only_scale is None else (config.only_scale,)
    return tuple(Scale(factor, factor) for factor in factors)


PHOTO_QUALITY = 75
"""JPEG quality of the low-resolution pictures that validate a run with the degradation photo."""


def protocol_of(config: TrainConfig) -> Protocol:
    """The protocol of a run's validations; what is trained on degraded pictures is validated on such."""
    jpeg = PHOTO_QUALITY if config.degradation == "photo" else None
    return named_protocol("benchmark", max_pixels=config.validation_pixels, jpeg=jpeg)


def validate(model: Model, pictures: PictureSet, protocol: Protocol) -> dict[str, float]:
    """Mean PSNR by scale, and their mean."""
    upscale = _exact_upscaler(model).array
    scores = evaluate(upscale, pictures, scales_of(model.config), protocol, model="validation").mean
    by_scale = {f"x{scale}": score.psnr for scale, score in scores.items()}
    return by_scale | {"mean": float(np.mean(list(by_scale.values())))}


def draw_crops(model: Model, pictures: PictureSet, protocol: Protocol, path: Path, *, count: int = 4) -> None:
    """Save rows of bicubic, model and ground truth at the largest factor as a picture."""
    scale = scales_of(model.config)[-1]
    large = [picture for picture in pictures.pictures if reason_to_skip(picture, scale, protocol) is None]
    rows: list[NDArray[np.uint8]] = []
    for picture in large[:count]:
        lr, hr = (pixels.astype(np.float32) / np.float32(255) for pixels in load_pair(picture, scale, protocol))
        size = (hr.shape[0], hr.shape[1])
        arguments: dict[str, Any] = {"size": size, "scale": (scale.y, scale.x), "cell_clip": True}
        rows.append(_join_centre_squares([bicubic(lr, **arguments), _exact_upscaler(model).array(lr, **arguments), hr]))
    if rows:
        path.parent.mkdir(parents=True, exist_ok=True)
        width = min(row.shape[1] for row in rows)
        Image.fromarray(np.concatenate([row[:, :width] for row in rows])).save(path)


def _exact_upscaler(model: Model) -> Upscaler:
    return Upscaler(model=model, integral="exact", precision="fp32")


def _join_centre_squares(pictures: Sequence[NDArray[np.float32]]) -> NDArray[np.uint8]:
    """Equal centre squares side by side, as bytes."""
    side = min(128, *pictures[0].shape[:2])
    top, left = (pictures[0].shape[0] - side) // 2, (pictures[0].shape[1] - side) // 2
    cut = [picture[top : top + side, left : left + side] for picture in pictures]
    return (np.concatenate(cut, axis=1).clip(0, 1) * 255 + 0.5).astype(np.uint8)
