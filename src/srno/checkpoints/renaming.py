"""From the tensors of a foreign state dict to ours; what the encoders of all systems are called there."""

from typing import TypeAlias

import torch
from torch import Tensor

from srno.config import EDSRConfig, EncoderConfig, RDNConfig
from srno.errors import SRNOError

State: TypeAlias = dict[str, Tensor]


class MissingError(KeyError):
    """A tensor that should be in a checkpoint, by its public name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Renamer:
    """Hands tensors out by their public names and collects them under ours; what is left over is an error."""

    def __init__(self, state: State) -> None:
        self.left = state
        self.ours: State = {}

    def has(self, public: str) -> bool:
        return f"{public}.weight" in self.left

    def count(self, pattern: str, step: int = 1) -> int:
        """How many of pattern.format(0), pattern.format(step), … there are."""
        count = 0
        while self.has(pattern.format(count * step)):
            count += 1
        return count

    def shape(self, public: str) -> torch.Size:
        if not self.has(public):
            raise MissingError(f"{public}.weight")
        return self.left[f"{public}.weight"].shape

    def take(self, public: str) -> Tensor:
        if public not in self.left:
            raise MissingError(public)
        return self.left.pop(public)

    def drop(self, *prefixes: str) -> None:
        """Forget tensors that the public code saves and never uses."""
        self.left = {name: tensor for name, tensor in self.left.items() if not name.startswith(prefixes)}

    def nest(self, prefix: str) -> None:
        """Put `prefix` before all names, where none has it: an encoder saved on its own."""
        if not any(name.startswith(prefix) for name in self.left):
            self.left = {f"{prefix}{name}": tensor for name, tensor in self.left.items()}

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


def rename_encoder(renamer: Renamer) -> EncoderConfig:
    """The encoder of any system, under `encoder.` there and here."""
    if renamer.has("encoder.SFENet1"):
        return _rdn(renamer)
    if renamer.has("encoder.head.0"):
        renamer.drop("encoder.sub_mean.", "encoder.add_mean.")
        return rename_edsr(renamer)
    raise SRNOError("wrong architecture: the encoder is neither EDSR nor RDN")


def rename_edsr(renamer: Renamer) -> EDSRConfig:
    """EDSR without its mean shift and tail."""
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
