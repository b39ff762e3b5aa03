"""Our models in the layout of the public code of each system: the inverse of what the package reads."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from srno.config import EDSRConfig, EncoderConfig, FixedScaleConfig, LIIFConfig, LTEConfig, MetaSRConfig, RDNConfig
from srno.operator.model import Model
from srno.rivals.liif import LIIF
from srno.rivals.lte import LTE
from srno.rivals.metasr import MetaSR

MEAN = torch.tensor([0.4488, 0.4371, 0.4040])


def as_public(model: Model, name: str) -> dict[str, Any]:
    """{'model': {'name', 'args', 'sd'}, …} for a system's public name."""
    state = model.state_dict()
    names = encoder_names(model.config.encoder)
    match model.config:
        case LIIFConfig() | MetaSRConfig() | LTEConfig():
            layers = "layers" if name == "lte-fast" else "imnet.layers"
            assert isinstance(model, LIIF | LTE | MetaSR)
            count = len(model.perceptron.linears())
            names |= {f"perceptron.layers.{i}": f"{layers}.{2 * i}" for i in range(count)}
            names |= {"coefficient": "coef", "frequency": "freq", "phase": "phase"}
        case FixedScaleConfig():
            names |= tail_names(model.config)
    public = {f"{names[key.rpartition('.')[0]]}.{key.rpartition('.')[2]}": value for key, value in state.items()}
    if name == "lte":
        for part in ("weight", "bias"):
            y, x = public[f"freq.{part}"].chunk(2)
            public[f"freq.{part}"] = torch.stack([y, x], dim=1).flatten(0, 1)
    if name == "lte-fast":
        public |= {key: public[key][..., None, None] for key in public if key.startswith("layers.") and "weight" in key}
    if not isinstance(model.config.encoder, RDNConfig):
        public |= {f"encoder.{key}": value for key, value in mean_shift(1).items()}
    return {"model": {"name": name, "args": {}, "sd": public}, "optimizer": {}, "epoch": 3}


def encoder_names(config: EncoderConfig) -> dict[str, str]:
    """Public names of our modules."""
    if isinstance(config, RDNConfig):
        names = {"shallow1": "SFENet1", "shallow2": "SFENet2", "fusion1": "GFF.0", "fusion2": "GFF.1"}
        for i in range(config.blocks):
            names[f"blocks.{i}.fusion"] = f"RDBs.{i}.LFF"
            names |= {f"blocks.{i}.convs.{j}": f"RDBs.{i}.convs.{j}.conv.0" for j in range(config.layers)}
    else:
        assert isinstance(config, EDSRConfig)
        names = {"head": "head.0", "tail": f"body.{config.blocks}"}
        for i in range(config.blocks):
            names |= {f"blocks.{i}.conv1": f"body.{i}.body.0", f"blocks.{i}.conv2": f"body.{i}.body.2"}
    return {f"encoder.{ours}": f"encoder.{theirs}" for ours, theirs in names.items()}


def tail_names(config: FixedScaleConfig) -> dict[str, str]:
    steps = 2 if config.scale == 4 else 1
    if isinstance(config.encoder, RDNConfig):
        return {f"tail.{2 * i}": f"encoder.UPNet.{2 * i}" for i in range(steps + 1)}
    return {f"tail.{2 * i}": f"encoder.tail.0.{2 * i}" for i in range(steps)} | {f"tail.{2 * steps}": "encoder.tail.1"}


def mean_shift(values: float) -> Mapping[str, Tensor]:
    """EDSR's 1×1 convolutions that subtract the mean colour and add it, for values up to `values`."""
    eye = torch.eye(3)[..., None, None]
    return {
        "sub_mean.weight": eye,
        "sub_mean.bias": -values * MEAN,
        "add_mean.weight": eye,
        "add_mean.bias": values * MEAN,
    }
