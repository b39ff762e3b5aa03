"""Checkpoints in the exact layout of the public SRNO code, made from our models by an independent renaming."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from srno.config import EDSRConfig, RDNConfig, SRNOConfig
from srno.operator.srno import SRNO

PublicState = OrderedDict[str, Tensor]


def public_state(model: SRNO) -> PublicState:
    """The state dict of the public `sronet`, 1×1 convolutions and interleaved q, k, v included."""
    ours = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    encoder = model.config.encoder
    assert isinstance(encoder, EDSRConfig | RDNConfig)
    state = _edsr(ours, encoder) if isinstance(encoder, EDSRConfig) else _rdn(ours, encoder)
    state |= _conv1x1(ours, "lifting.linear", "conv00")
    for t in range(model.config.iterations):
        state |= _attention(ours, model.config, t)
    state |= _conv1x1(ours, "projection.hidden", "fc1") | _conv1x1(ours, "projection.rgb", "fc2")
    return state


def public_content(model: SRNO, *, epoch: int = 1000) -> dict[str, Any]:
    """The pickled content: model with name, arguments and tensors, optimiser with its moments, epoch."""
    state = public_state(model)
    parameters = [torch.nn.Parameter(tensor.clone()) for tensor in state.values()]
    optimiser = torch.optim.Adam(parameters, lr=4e-4)
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimiser.step()
    config = model.config
    name = "edsr-baseline" if isinstance(config.encoder, EDSRConfig) else "rdn"
    arguments = {
        "encoder_spec": {"name": name, "args": {"no_upsampling": True}},
        "width": config.d_z,
        "blocks": config.heads,
    }
    return {
        "model": {"name": "sronet", "args": arguments, "sd": state},
        "optimizer": {"name": "adam", "args": {"lr": 4e-4}, "sd": optimiser.state_dict()},
        "epoch": epoch,
    }


def write_public(content: object, path: Path, *, legacy: bool = False) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)
    return path


def _edsr(ours: dict[str, Tensor], config: EDSRConfig) -> PublicState:
    state: PublicState = OrderedDict()
    for sign, shift in ((-1.0, "sub_mean"), (1.0, "add_mean")):  # saved by the public code, never used
        state[f"encoder.{shift}.weight"] = torch.eye(3).reshape(3, 3, 1, 1)
        state[f"encoder.{shift}.bias"] = sign * torch.tensor([0.4488, 0.4371, 0.4040])
    names = {"encoder.head": "encoder.head.0"}
    for i in range(config.blocks):
        names[f"encoder.blocks.{i}.conv1"] = f"encoder.body.{i}.body.0"
        names[f"encoder.blocks.{i}.conv2"] = f"encoder.body.{i}.body.2"
    return state | _renamed(ours, names | {"encoder.tail": f"encoder.body.{config.blocks}"})


def _rdn(ours: dict[str, Tensor], config: RDNConfig) -> PublicState:
    names = {"encoder.shallow1": "encoder.SFENet1", "encoder.shallow2": "encoder.SFENet2"}
    for i in range(config.blocks):
        for j in range(config.layers):
            names[f"encoder.blocks.{i}.convs.{j}"] = f"encoder.RDBs.{i}.convs.{j}.conv.0"
        names[f"encoder.blocks.{i}.fusion"] = f"encoder.RDBs.{i}.LFF"
    return _renamed(ours, names | {"encoder.fusion1": "encoder.GFF.0", "encoder.fusion2": "encoder.GFF.1"})


def _renamed(ours: dict[str, Tensor], names: dict[str, str]) -> PublicState:
    state: PublicState = OrderedDict()
    for name, public in names.items():
        state[f"{public}.weight"] = ours[f"{name}.weight"]
        state[f"{public}.bias"] = ours[f"{name}.bias"]
    return state


def _conv1x1(ours: dict[str, Tensor], name: str, public: str) -> PublicState:
    weight, bias = ours[f"{name}.weight"], ours[f"{name}.bias"]
    return OrderedDict({f"{public}.weight": weight[:, :, None, None], f"{public}.bias": bias})


def _attention(ours: dict[str, Tensor], config: SRNOConfig, t: int) -> PublicState:
    """q, k and v of the first head, then q, k and v of the second, …"""
    state: PublicState = OrderedDict()
    width = config.head_width
    for part in ("weight", "bias"):
        rows: list[Tensor] = []
        for head in range(config.heads):
            own = slice(head * width, (head + 1) * width)
            rows += [ours[f"layers.{t}.{name}.{part}"][own] for name in ("query", "key", "value")]
        stacked = torch.cat(rows)
        state[f"conv{t}.qkv_proj.{part}"] = stacked[:, :, None, None] if part == "weight" else stacked
    state |= _conv1x1(ours, f"layers.{t}.W1", f"conv{t}.o_proj1") | _conv1x1(ours, f"layers.{t}.W2", f"conv{t}.o_proj2")
    for norm, public in (("key_norm", "kln"), ("value_norm", "vln")):
        for part in ("weight", "bias"):
            state[f"conv{t}.{public}.{part}"] = ours[f"layers.{t}.{norm}.{part}"][:, None, :]
    return state
