"""Checkpoints as the public code of SRNO writes them (.pth): read without running anything in them, renamed to ours.

Hyper-parameters are deduced from the tensors, so that other widths, heads and encoders load as well.
"""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from srno.checkpoints.native import Card, Checkpoint, check_state
from srno.config import EDSRConfig, EncoderConfig, ModelConfig, RDNConfig, SRNOConfig
from srno.errors import SRNOError

State: TypeAlias = dict[str, Tensor]


def read_public(path: Path) -> Checkpoint:
    """Read and check a public checkpoint of any system that we know."""
    name, state = _unpack(path, _load_safely(path))
    if name not in _SYSTEMS:
        raise SRNOError(f"{path}: a checkpoint of {name!r}; systems that can be read: {', '.join(_SYSTEMS)}")
    try:
        config, ours = _SYSTEMS[name](_Renamer(state))
    except _MissingError as missing:
        raise SRNOError(f"{path}: tensor {missing} is missing from this {name} checkpoint") from None
    except SRNOError as error:
        raise SRNOError(f"{path}: {error}") from None
    check_state(config, ours, path)
    card = Card(name=path.stem, recipe=f"converted from a public {name} checkpoint, {path.name}")
    return Checkpoint(config=config, state=ours, card=card)


def _load_safely(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = next((line.strip() for line in str(error).splitlines() if "GLOBAL" in line), "not plain tensors")
        raise SRNOError(f"{path}: refused, it holds more than weights ({reason})") from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
        reason = (str(error).splitlines() or ["no content"])[0]
        raise SRNOError(f"{path}: not a readable checkpoint ({reason})") from None


def _unpack(path: Path, content: Any) -> tuple[str, State]:
    """The system's name and its state dict, out of {'model': {'name', 'args', 'sd'}, …}."""
    model: Any = content.get("model") if isinstance(content, dict) else None
    name: Any = model.get("name") if isinstance(model, dict) else None
    state: Any = model.get("sd") if isinstance(model, dict) else None
    if not (isinstance(name, str) and isinstance(state, dict) and state and _all_tensors(state)):
        raise SRNOError(f"{path}: not a public checkpoint (no model name with a state dict of tensors inside)")
    return name, dict(cast(State, state))


def _all_tensors(state: dict[Any, Any]) -> bool:
    return all(isinstance(key, str) and isinstance(value, Tensor) for key, value in state.items())


class _MissingError(KeyError):
    def __str__(self) -> str:
        return str(self.args[0])


class _Renamer:
    """Hands tensors out by their public names and collects them under ours; what is left over is an error."""

    def __init__(self, state: State) -> None:
        self.left = state
        self.ours: State = {}

    def has(self, public: str) -> bool:
        return f"{public}.weight" in self.left

    def shape(self, public: str) -> torch.Size:
        if not self.has(public):
            raise _MissingError(f"{public}.weight")
        return self.left[f"{public}.weight"].shape

    def take(self, public: str) -> Tensor:
        if public not in self.left:
            raise _MissingError(public)
        return self.left.pop(public)

    def drop(self, *prefixes: str) -> None:
        """Forget tensors that the public code saves and never uses."""
        self.left = {name: tensor for name, tensor in self.left.items() if not name.startswith(prefixes)}

    def conv(self, public: str, ours: str) -> None:
        self.ours[f"{ours}.weight"] = self.take(f"{public}.weight")
        self.ours[f"{ours}.bias"] = self.take(f"{public}.bias")

    def linear(self, public: str, ours: str) -> None:
        """A linear map, which the public code often writes as a 1×1 convolution."""
        self.ours[f"{ours}.weight"] = self.take(f"{public}.weight").flatten(1)
        self.ours[f"{ours}.bias"] = self.take(f"{public}.bias")

    def finish(self) -> State:
        for name in self.left:
            raise SRNOError(f"unknown tensor {name}")
        return self.ours


def _count(renamer: _Renamer, pattern: str) -> int:
    """How many of pattern.format(0), pattern.format(1), … there are."""
    count = 0
    while renamer.has(pattern.format(count)):
        count += 1
    return count


def _encoder(renamer: _Renamer) -> EncoderConfig:
    if renamer.has("encoder.SFENet1"):
        return _rdn(renamer)
    if renamer.has("encoder.head.0"):
        return _edsr(renamer)
    raise SRNOError("wrong architecture: the encoder is neither EDSR nor RDN")


def _edsr(renamer: _Renamer) -> EDSRConfig:
    renamer.drop("encoder.sub_mean.", "encoder.add_mean.")
    blocks = _count(renamer, "encoder.body.{}.body.0")
    config = EDSRConfig(channels=renamer.shape("encoder.head.0")[0], blocks=blocks)
    renamer.conv("encoder.head.0", "encoder.head")
    for i in range(blocks):
        renamer.conv(f"encoder.body.{i}.body.0", f"encoder.blocks.{i}.conv1")
        renamer.conv(f"encoder.body.{i}.body.2", f"encoder.blocks.{i}.conv2")
    renamer.conv(f"encoder.body.{blocks}", "encoder.tail")
    return config


def _rdn(renamer: _Renamer) -> RDNConfig:
    config = RDNConfig(
        channels=renamer.shape("encoder.SFENet1")[0],
        blocks=_count(renamer, "encoder.RDBs.{}.LFF"),
        layers=_count(renamer, "encoder.RDBs.0.convs.{}.conv.0"),
        growth=renamer.shape("encoder.RDBs.0.convs.0.conv.0")[0],
    )
    renamer.conv("encoder.SFENet1", "encoder.shallow1")
    renamer.conv("encoder.SFENet2", "encoder.shallow2")
    for i in range(config.blocks):
        for j in range(config.layers):
            renamer.conv(f"encoder.RDBs.{i}.convs.{j}.conv.0", f"encoder.blocks.{i}.convs.{j}")
        renamer.conv(f"encoder.RDBs.{i}.LFF", f"encoder.blocks.{i}.fusion")
    renamer.conv("encoder.GFF.0", "encoder.fusion1")
    renamer.conv("encoder.GFF.1", "encoder.fusion2")
    return config


def _srno(renamer: _Renamer) -> tuple[ModelConfig, State]:
    if not renamer.has("conv00"):
        raise _MissingError("conv00.weight")
    encoder = _encoder(renamer)
    heads = renamer.shape("conv0.kln")[0]
    config = SRNOConfig(
        encoder=encoder,
        d_z=renamer.shape("conv00")[0],
        heads=heads,
        iterations=_count(renamer, "conv{}.qkv_proj"),
        projection_width=renamer.shape("fc1")[0],
    )
    renamer.linear("conv00", "lifting.linear")
    for t in range(config.iterations):
        _galerkin(renamer, f"conv{t}", f"layers.{t}", heads)
    renamer.linear("fc1", "projection.hidden")
    renamer.linear("fc2", "projection.rgb")
    return config, renamer.finish()


def _galerkin(renamer: _Renamer, public: str, ours: str, heads: int) -> None:
    """q, k and v are interleaved per head in one map: rows are (heads, 3, width)."""
    for part in ("weight", "bias"):
        qkv = renamer.take(f"{public}.qkv_proj.{part}")
        if qkv.shape[0] % (3 * heads):
            raise SRNOError(f"{public}.qkv_proj.{part} has {qkv.shape[0]} rows, which {heads} heads do not divide")
        split = qkv.reshape(heads, 3, -1, *qkv.shape[1:2])
        for i, name in enumerate(("query", "key", "value")):
            renamer.ours[f"{ours}.{name}.{part}"] = split[:, i].flatten(0, 1)
        for norm, name in (("kln", "key_norm"), ("vln", "value_norm")):
            renamer.ours[f"{ours}.{name}.{part}"] = renamer.take(f"{public}.{norm}.{part}").squeeze(1)
    renamer.linear(f"{public}.o_proj1", f"{ours}.W1")
    renamer.linear(f"{public}.o_proj2", f"{ours}.W2")


_SYSTEMS: dict[str, Callable[[_Renamer], tuple[ModelConfig, State]]] = {"sronet": _srno}
