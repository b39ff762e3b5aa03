"""What can stand in a table: bicubic, a model by name or file, or the networks of a fixed scale together."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from srno._version import __version__
from srno.checkpoints.catalogue import find, read_checkpoint
from srno.checkpoints.native import Checkpoint
from srno.config import ModelConfig, config_to_dict
from srno.errors import SRNOError
from srno.evaluation.cache import ScoreCache
from srno.evaluation.datasets import PictureSet
from srno.evaluation.evaluate import Evaluation, Progress, Skipped, Upscale, bicubic, evaluate_sets
from srno.evaluation.fixed_scale import FixedScaleUpscaler
from srno.evaluation.protocols import Protocol, Scale
from srno.inference.field import Integral
from srno.inference.upscaler import Upscaler
from srno.rivals.fixed import FixedScale


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a model is evaluated. Only what is in `note` changes a result."""

    integral: Integral = "exact"
    ensemble: bool = False
    """Mean over the eight flips and transposes of the picture."""
    memory: int | None = None
    device: str = "cpu"

    @property
    def note(self) -> str:
        """What differs from a plain exact evaluation."""
        parts = ["self-ensemble of 8"] if self.ensemble else []
        return ", ".join(parts if self.integral == "exact" else [*parts, f"integrals from {self.integral} points"])


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


def find_method(text: str, settings: Settings) -> Method:
    """`bicubic`, a shipped name, a file, files of fixed-scale networks with commas; a name of one's own as `NAME=…`."""
    name, equals, what = text.partition("=")
    if not equals or not name or Path(text).is_file():
        name, what = "", text
    if what == "bicubic":
        return Method(name or "bicubic", bicubic, "bicubic")
    sources = [what] if Path(what).is_file() else what.split(",")
    paths = [find(source) for source in sources]
    checkpoints = [read_checkpoint(path) for path in paths]
    return make_method(name or ", ".join(path.stem for path in paths), checkpoints, settings)


def find_methods(texts: Sequence[str], settings: Settings) -> list[Method]:
    """Several at once; where two would have the same name, they are called as they were written."""
    methods = [find_method(text, settings) for text in texts]
    names = [method.name for method in methods]
    named = [
        replace(method, name=text) if names.count(method.name) > 1 else method
        for text, method in zip(texts, methods, strict=True)
    ]
    for name in (method.name for method in named):
        if sum(method.name == name for method in named) > 1:
            raise SRNOError(f"{name} is given twice; give each its own name, such as first={name}")
    return named


def make_method(name: str, checkpoints: Sequence[Checkpoint], settings: Settings) -> Method:
    """One model, or the networks of a fixed scale, each for another factor."""
    models = [checkpoint.model().requires_grad_(False).to(settings.device) for checkpoint in checkpoints]
    networks = [model for model in models if isinstance(model, FixedScale)]
    weights = hash_weights(checkpoints, settings)
    configs = tuple(checkpoint.config for checkpoint in checkpoints)
    if networks:
        factors = [network.config.scale for network in networks]
        if len(networks) < len(models) or len(set(factors)) < len(factors):
            raise SRNOError(f"{name}: only networks of a fixed scale, each for another factor, go together")
        ordered = tuple(sorted(networks, key=lambda network: network.config.scale))
        fixed = FixedScaleUpscaler(ordered, settings.memory, settings.ensemble)
        return Method(name, fixed, weights, configs, settings.note, fixed)
    if len(models) > 1:
        raise SRNOError(f"{name}: only networks of a fixed scale, each for another factor, go together")
    upscaler = Upscaler(models[0], settings.integral, settings.memory, settings.ensemble)
    return Method(name, upscaler, weights, configs, settings.note)


def hash_weights(checkpoints: Sequence[Checkpoint], settings: Settings) -> str:
    """A hash of the tensors' content and of all else that decides a result; files and their cards do not count."""
    # the version stands for the engine's arithmetic
    sha = hashlib.sha256(f"{__version__} {settings.note}".encode())
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
    progress: Progress | None = None,
) -> tuple[Evaluation, ...]:
    """Score a method on sets; scores in the folder `cache` are not computed again. Scales beyond it are skipped."""
    can = [scale for scale in scales if max(scale.y, scale.x) <= method.largest]
    if not can:
        raise SRNOError(f"--scales {', '.join(map(str, scales))}: {method.name} goes up to ×{method.largest:g}")
    known = ScoreCache(method.weights, cache) if cache else None
    found = evaluate_sets(method.upscale, sets, can, protocol, model=method.name, cache=known, progress=progress)
    reason = f"goes up to ×{method.largest:g}"
    beyond = tuple(Skipped(method.name, scale, reason) for scale in scales if scale not in can)
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
