"""How good the weights are, on pictures that were never trained on: the numbers that select."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from srno.data.cache import Cache
from srno.evaluation.datasets import Picture, PictureSet, find_sets, load_pair
from srno.evaluation.evaluate import bicubic, evaluate
from srno.evaluation.protocols import Protocol, Scale, named_protocol
from srno.inference.upscaler import Upscaler
from srno.operator.model import Model
from srno.training.config import TrainConfig

SCALES = (Scale(2, 2), Scale(3, 3), Scale(4, 4))


def protocol_of(config: TrainConfig) -> Protocol:
    return named_protocol("benchmark", max_pixels=config.validation_pixels)


def hold_out(cache: Cache, config: TrainConfig) -> tuple[Cache, PictureSet | None]:
    """Pictures to train on, and pictures to select by: a folder, or some of the data by a hash of their names."""
    if config.validation is not None:
        sets = find_sets(config.validation)
        return cache, PictureSet("validation", tuple(picture for each in sets for picture in each.pictures))
    ranked = sorted(range(len(cache.pictures)), key=lambda i: _rank(cache.pictures[i].path))
    large = [i for i in ranked if min(cache.pictures[i].height, cache.pictures[i].width) >= 96]
    chosen = set(large[: min(config.hold_out, len(cache.pictures) - 1)])
    if not chosen:
        return cache, None
    paths = [cache.pictures[i].path for i in sorted(chosen)]
    training = cache.take([i for i in range(len(cache.pictures)) if i not in chosen])
    return training, PictureSet("held out", tuple(Picture(path.name, path) for path in paths))


def _rank(path: Path) -> str:
    return hashlib.sha256(path.name.encode()).hexdigest()


def validate(model: Model, pictures: PictureSet, protocol: Protocol) -> dict[str, float]:
    """Mean PSNR by scale, and their mean."""
    scores = evaluate(Upscaler(model), pictures, SCALES, protocol, model="validation").mean
    by_scale = {f"x{scale}": score.psnr for scale, score in scores.items()}
    return by_scale | {"mean": float(np.mean(list(by_scale.values())))}


def draw_crops(model: Model, pictures: PictureSet, protocol: Protocol, path: Path, *, count: int = 4) -> None:
    """Rows of bicubic, model and truth at ×4, for looking at."""
    rows: list[NDArray[np.uint8]] = []
    for picture in pictures.pictures[:count]:
        lr, hr = (pixels.astype(np.float32) / np.float32(255) for pixels in load_pair(picture, SCALES[-1], protocol))
        size = (hr.shape[0], hr.shape[1])
        arguments: dict[str, Any] = {"size": size, "scale": (4.0, 4.0), "cell_clip": True}
        rows.append(_square([bicubic(lr, **arguments), Upscaler(model)(lr, **arguments), hr]))
    path.parent.mkdir(parents=True, exist_ok=True)
    width = min(row.shape[1] for row in rows)
    Image.fromarray(np.concatenate([row[:, :width] for row in rows])).save(path)


def _square(pictures: Sequence[NDArray[np.float32]]) -> NDArray[np.uint8]:
    """Equal centre squares side by side, as bytes."""
    side = min(128, *pictures[0].shape[:2])
    top, left = (pictures[0].shape[0] - side) // 2, (pictures[0].shape[1] - side) // 2
    cut = [picture[top : top + side, left : left + side] for picture in pictures]
    return (np.concatenate(cut, axis=1).clip(0, 1) * 255 + 0.5).astype(np.uint8)
