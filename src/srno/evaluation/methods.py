"""What can stand in a table: bicubic, a model by name or file, or the networks of a fixed scale together."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from srno._version import __version__
from srno.checkpoints.catalogue import find, read_checkpoint
from srno.checkpoints.native import Checkpoint
from srno.config import ModelConfig, config_to_dict
from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet
from srno.evaluation.evaluate import Evaluation, Report, SkippedScore, Upscale, bicubic, evaluate_sets
from srno.evaluation.protocols import Protocol, Scale
from srno.evaluation.scores import ScoreCache
from srno.field.machine import choose_device
from srno.imaging.resize import matlab_bicubic_float
from srno.rivals.fixed import FixedScale
from srno.upscaling.upscaler import Upscaler


@dataclass(frozen=True)
class FixedScaleUpscaler:
    """One or more networks of the same kind, each for one factor, as a single method."""

    networks: tuple[FixedScale, ...]
    """by rising factor"""
    upscaler: Upscaler
    """how each is evaluated"""

    @property
    def largest(self) -> int:
        """Beyond this factor there is nothing to scale down."""
        return self.networks[-1].config.scale

    def nearest_larger(self, factor: float) -> FixedScale:
        """The network with the smallest factor that is at least this one."""
        for network in self.networks:
            if network.config.scale >= factor:
                return network
        raise SRNOError(f"--scales {factor:g}: the largest network of a fixed scale given here is for ×{self.largest}")

    def note(self, scales: Sequence[Scale]) -> str:
        """What was done at the scales for which there is no network."""
        known = [network.config.scale for network in self.networks]
        found = {scale: self.nearest_larger(max(scale.y, scale.x)).config.scale for scale in scales}
        others = [
            f"×{scale} by the network for ×{factor}"
            for scale, factor in found.items()
            if scale.y != scale.x or scale.x not in known
        ]
        return f"{', '.join(others)} and a bicubic downscale" if others else ""

    def __call__(
        self, lr: NDArray[np.float32], *, size: tuple[int, int], scale: tuple[float, float], cell_clip: bool
    ) -> NDArray[np.float32]:
        """`lr` (h, w, 3) in [0, 1] → (*size, 3), not clamped; `size` is (height, width)."""
        network = self.nearest_larger(max(scale))
        factor = network.config.scale
        larger = (lr.shape[0] * factor, lr.shape[1] * factor)
        # at the centres of the network's own pixels, a render is the network's picture
        upscaler = self.upscaler.using(network)
        picture = upscaler.array(lr, size=larger, scale=(factor, factor), cell_clip=cell_clip)
        return picture if size == larger else matlab_bicubic_float(picture, size)


@dataclass(frozen=True)
class Method:
    """A line of a table."""

    name: str
    upscale: Upscale
    weights: str
    """hash of everything in it that decides a result"""
    configs: tuple[ModelConfig, ...] = ()
    """of its networks"""
    note: str = ""
    fixed: FixedScaleUpscaler | None = None
    """where it is made of networks of a fixed scale, these"""

    @property
    def largest(self) -> float:
        """The largest factor that it can do."""
        return self.fixed.largest if self.fixed else math.inf


def find_method(text: str, upscaler: Upscaler) -> Method:
    """`bicubic`, a shipped name, a file, files of fixed-scale networks with commas; a name of one's own as `NAME=…`."""
    name, equals, what = text.partition("=")
    if not equals or not name or Path(text).is_file():
        name, what = "", text
    if what == "bicubic":
        return Method(name or "bicubic", bicubic, "bicubic")
    sources = [what] if Path(what).is_file() else what.split(",")
    paths = [find(source) for source in sources]
    checkpoints = [read_checkpoint(path) for path in paths]
    return make_method(name or ", ".join(path.stem for path in paths), checkpoints, upscaler)


def find_methods(texts: Sequence[str], upscaler: Upscaler) -> list[Method]:
    """Several at once; where two would have the same name, they are called as they were written."""
    methods = [find_method(text, upscaler) for text in texts]
    names = [method.name for method in methods]
    named = [
        replace(method, name=text) if names.count(method.name) > 1 else method
        for text, method in zip(texts, methods, strict=True)
    ]
    for name in (method.name for method in named):
        if sum(method.name == name for method in named) > 1:
            raise SRNOError(f"{name} is given twice; give each its own name, such as first={name}")
    return named


def make_method(name: str, checkpoints: Sequence[Checkpoint], upscaler: Upscaler) -> Method:
    """One model, or the networks of a fixed scale, each for another factor."""
    device = choose_device(upscaler.device)
    models = [checkpoint.model().requires_grad_(False).to(device) for checkpoint in checkpoints]
    networks = [model for model in models if isinstance(model, FixedScale)]
    weights = hash_weights(checkpoints, upscaler)
    configs = tuple(checkpoint.config for checkpoint in checkpoints)
    if networks:
        factors = [network.config.scale for network in networks]
        if len(networks) < len(models) or len(set(factors)) < len(factors):
            raise SRNOError(f"{name}: only networks of a fixed scale, each for another factor, go together")
        ordered = tuple(sorted(networks, key=lambda network: network.config.scale))
        fixed = FixedScaleUpscaler(ordered, upscaler)
        return Method(name, fixed, weights, configs, upscaler.note, fixed)
    if len(models) > 1:
        raise SRNOError(f"{name}: only networks of a fixed scale, each for another factor, go together")
    return Method(name, upscaler.using(models[0]).array, weights, configs, upscaler.note)


def hash_weights(checkpoints: Sequence[Checkpoint], upscaler: Upscaler) -> str:
    """A hash of the tensors' content and of all else that decides a result; files and their cards do not count."""
    # the version stands for the engine's arithmetic
    sha = hashlib.sha256(f"{__version__} {upscaler.note}".encode())
    for checkpoint in checkpoints:
        sha.update(json.dumps(config_to_dict(checkpoint.config), sort_keys=True).encode())
        for name, tensor in sorted(checkpoint.state.items()):
            sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            sha.update(_bytes(tensor))
    return sha.hexdigest()


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def evaluate_method(
    method: Method,
    sets: Sequence[PictureSet],
    scales: Sequence[Scale],
    protocol: Protocol,
    *,
    cache: Path | None = None,
    progress: Report | None = None,
) -> tuple[Evaluation, ...]:
    """Score a method on sets; scores in the folder `cache` are not computed again. Scales beyond it are skipped."""
    can = [scale for scale in scales if max(scale.y, scale.x) <= method.largest]
    if not can:
        raise SRNOError(f"--scales {', '.join(map(str, scales))}: {method.name} goes up to ×{method.largest:g}")
    known = ScoreCache(method.weights, cache) if cache else None
    found = evaluate_sets(method.upscale, sets, can, protocol, model=method.name, cache=known, progress=progress)
    reason = f"goes up to ×{method.largest:g}"
    beyond = tuple(SkippedScore(method.name, scale, reason) for scale in scales if scale not in can)
    downscale = method.fixed.note(can) if method.fixed else ""
    note = "; ".join(part for part in (method.note, downscale) if part)
    return tuple(
        replace(
            each,
            scores={scale: each.scores.get(scale, {}) for scale in scales},
            skipped=each.skipped + beyond,
            note=note,
        )
        for each in found
    )
