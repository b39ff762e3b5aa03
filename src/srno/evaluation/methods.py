"""Methods that a table compares: bicubic, a model by name or file, or several fixed-scale networks as one method."""

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
from srno.checkpoints.catalogue import find, read_cleaning
from srno.checkpoints.native import Checkpoint
from srno.config import ModelConfig, config_to_dict
from srno.errors import SRNOError
from srno.evaluation.datasets import PictureSet
from srno.evaluation.evaluate import (
    Evaluation,
    ReportProgress,
    ScoreCache,
    SkippedScore,
    Upscale,
    bicubic,
    evaluate_sets,
)
from srno.evaluation.protocols import Protocol, Scale
from srno.imaging.picture import Compression
from srno.imaging.resize import matlab_bicubic_float
from srno.machine import choose_device
from srno.rivals.fixed import FixedScale
from srno.upscaling.upscaler import Upscaler


@dataclass(frozen=True)
class FixedScaleUpscaler:
    """One or more fixed-scale networks, each for one factor, as a single method."""

    networks: tuple[FixedScale, ...]
    """in ascending order of their factors"""
    upscaler: Upscaler
    """settings for evaluating each network"""

    @property
    def largest(self) -> int:
        """The largest factor; larger scales are not supported."""
        return self.networks[-1].config.scale

    def nearest_larger(self, factor: float) -> FixedScale:
        """The network with the smallest factor that is at least this one."""
        for network in self.networks:
            if network.config.scale >= factor:
                return network
        raise SRNOError(f"--scales {factor:g}: the largest of these fixed-scale networks is for ×{self.largest}")

    def note(self, scales: Sequence[Scale]) -> str:
        """Describe how the scales without a separate network are computed."""
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
        # a render at the network's own pixel centres equals the network's output
        upscaler = self.upscaler.using(network)
        picture = upscaler.array(lr, size=larger, scale=(factor, factor), cell_clip=cell_clip)
        return picture if size == larger else matlab_bicubic_float(picture, size)


@dataclass(frozen=True)
class Method:
    """A row of a table: a named way to upscale."""

    name: str
    upscale: Upscale
    weights: str
    """hash of everything that affects its results"""
    configs: tuple[ModelConfig, ...] = ()
    """configs of its networks"""
    note: str = ""
    fixed: FixedScaleUpscaler | None = None
    """set if it consists of fixed-scale networks"""

    @property
    def largest(self) -> float:
        """The largest supported factor."""
        return self.fixed.largest if self.fixed else math.inf


def find_method(text: str, upscaler: Upscaler, compression: Compression | None = None) -> Method:
    """Parse `bicubic`, a shipped name, a file, or comma-separated files of fixed-scale networks; `NAME=…` names it.

    `compression` is that of the pictures to enlarge, for `clean="auto"`.
    """
    name, equals, spec = text.partition("=")
    if not equals or not name or Path(text).is_file():
        name, spec = "", text
    if spec == "bicubic":
        return Method(name or "bicubic", bicubic, "bicubic")
    sources = [spec] if Path(spec).is_file() else spec.split(",")
    paths = [find(source) for source in sources]
    suited = replace(upscaler, model=paths[0]).for_picture(compression)
    checkpoints = [read_cleaning(path, suited.strength) for path in paths]
    return make_method(name or ", ".join(path.stem for path in paths), checkpoints, suited)


def find_methods(texts: Sequence[str], upscaler: Upscaler, compression: Compression | None = None) -> list[Method]:
    """Parse several methods; if two have the same name, each is named by its full text."""
    methods = [find_method(text, upscaler, compression) for text in texts]
    names = [method.name for method in methods]
    named = [
        replace(method, name=text) if names.count(method.name) > 1 else method
        for text, method in zip(texts, methods, strict=True)
    ]
    for name in (method.name for method in named):
        if sum(method.name == name for method in named) > 1:
            raise SRNOError(f"{name} is given twice; give each a different name, such as first={name}")
    return named


def make_method(name: str, checkpoints: Sequence[Checkpoint], upscaler: Upscaler) -> Method:
    """Make a method from one model, or from fixed-scale networks with different factors."""
    device = choose_device(upscaler.device)
    models = [checkpoint.model().requires_grad_(False).to(device) for checkpoint in checkpoints]
    networks = [model for model in models if isinstance(model, FixedScale)]
    weights = hash_weights(checkpoints, upscaler)
    configs = tuple(checkpoint.config for checkpoint in checkpoints)
    if networks:
        factors = [network.config.scale for network in networks]
        if len(networks) < len(models) or len(set(factors)) < len(factors):
            raise SRNOError(f"{name}: only fixed-scale networks with different factors can be combined")
        ordered = tuple(sorted(networks, key=lambda network: network.config.scale))
        fixed = FixedScaleUpscaler(ordered, upscaler)
        return Method(name, fixed, weights, configs, upscaler.note, fixed)
    if len(models) > 1:
        raise SRNOError(f"{name}: only fixed-scale networks with different factors can be combined")
    return Method(name, upscaler.using(models[0]).array, weights, configs, upscaler.note)


def hash_weights(checkpoints: Sequence[Checkpoint], upscaler: Upscaler) -> str:
    """Hash the tensors' content and everything else that affects a result, but not file names or cards."""
    # another version may compute differently
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
    progress: ReportProgress | None = None,
) -> tuple[Evaluation, ...]:
    """Score a method on sets. Scores in the folder `cache` are not recomputed; unsupported scales are skipped."""
    supported = [scale for scale in scales if max(scale.y, scale.x) <= method.largest]
    if not supported:
        raise SRNOError(f"--scales {', '.join(map(str, scales))}: {method.name} goes up to ×{method.largest:g}")
    score_cache = ScoreCache(method.weights, cache) if cache else None
    found = evaluate_sets(
        method.upscale, sets, supported, protocol, model=method.name, cache=score_cache, progress=progress
    )
    reason = f"goes up to ×{method.largest:g}"
    beyond = tuple(SkippedScore(method.name, scale, reason) for scale in scales if scale not in supported)
    downscale = method.fixed.note(supported) if method.fixed else ""
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
