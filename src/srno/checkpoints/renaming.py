"""Rename the tensors of a public state dict to ours, and the names of the encoders, which all systems share."""

from typing import TypeAlias

import torch
from torch import Tensor

from srno.config import EDSRConfig, EncoderConfig, RDNConfig
from srno.errors import SRNOError

State: TypeAlias = dict[str, Tensor]


class MissingError(KeyError):
    """A tensor is missing from a checkpoint; the argument is its public name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Renamer:
    """Moves tensors from their public names to ours; a tensor that remains at the end is an error."""

    def __init__(self, state: State) -> None:
        self.remaining = state
        self.ours: State = {}

    def has(self, public: str) -> bool:
        return f"{public}.weight" in self.remaining

    def count(self, pattern: str, step: int = 1) -> int:
        """Count pattern.format(0), pattern.format(step), … up to the first that is missing."""
        count = 0
        while self.has(pattern.format(count * step)):
            count += 1
        return count

    def shape(self, public: str) -> torch.Size:
        if not self.has(public):
            raise MissingError(f"{public}.weight")
        return self.remaining[f"{public}.weight"].shape

    def take(self, public: str) -> Tensor:
        if public not in self.remaining:
            raise MissingError(public)
        return self.remaining.pop(public)

    def drop(self, *prefixes: str) -> None:
        """Remove tensors that the public code saves and never uses."""
        self.remaining = {name: tensor for name, tensor in self.remaining.items() if not name.startswith(prefixes)}

    def nest(self, prefix: str) -> None:
        """Add `prefix` to all names if no name has it, as in a file with only an encoder."""
        if not any(name.startswith(prefix) for name in self.remaining):
            self.remaining = {f"{prefix}{name}": tensor for name, tensor in self.remaining.items()}

    def conv(self, public: str, ours: str) -> None:
        self.ours[f"{ours}.weight"] = self.take(f"{public}.weight")
        self.ours[f"{ours}.bias"] = self.take(f"{public}.bias")

    def linear(self, public: str, ours: str) -> None:
        """Rename a linear map, which is often a 1×1 convolution in the public code."""
        self.ours[f"{ours}.weight"] = self.take(f"{public}.weight").flatten(1)
        self.ours[f"{ours}.bias"] = self.take(f"{public}.bias")

    def finish(self) -> State:
        for name in self.remaining:
            raise SRNOError(f"unknown tensor {name}")
        return self.ours


def rename_encoder(renamer: Renamer) -> EncoderConfig:
    """Rename the encoder of any system; its prefix is `encoder.` in both layouts."""
    if renamer.has("encoder.SFENet1"):
        return _rdn(renamer)
    if renamer.has("encoder.head.0"):
        renamer.drop("encoder.sub_mean.", "encoder.add_mean.")
        return rename_edsr(renamer)
    raise SRNOError("wrong architecture: the encoder is neither EDSR nor RDN")


def rename_edsr(renamer: Renamer) -> EDSRConfig:
    """Rename EDSR without its mean shift and tail."""
    blocks = renamer.count("encoder.body.{}.body.0")
    config = EDSRConfig(channels=renamer.shape("encoder.head.0")[0], blocks=blocks)
    renamer.conv("encoder.head.0", "encoder.head")
    for i in range(blocks):
        renamer.conv(f"encoder.body.{i}.body.0", f"encoder.blocks.{i}.conv1")
        renamer.conv(f"encoder.body.{i}.body.2", f"encoder.blocks.{i}.conv2")
    renamer.conv(f"encoder.body.{blocks}", "encoder.tail")
    return config


def _rdn(renamer: Renamer) -> RDNConfig:
    config = RDNConfig(
        channels=renamer.shape("encoder.SFENet1")[0],
        blocks=renamer.count("encoder.RDBs.{}.LFF"),
        layers=renamer.count("encoder.RDBs.0.convs.{}.conv.0"),
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
