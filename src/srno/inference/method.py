"""How pictures are enlarged, from the words that the API and the command line share."""

from pathlib import Path
from typing import Literal, TypeAlias, get_args

import torch

from srno.checkpoints.catalogue import load
from srno.errors import SRNOError
from srno.inference.device import choose_device
from srno.inference.enlarge import AlphaBy, Method
from srno.inference.field import Integral
from srno.inference.memory import parse_memory
from srno.operator.model import Model

ModelLike: TypeAlias = str | Path | Model
Precision: TypeAlias = Literal["keep", "fp32", "bf16", "fp16"]
"""Of the products; sums over points and the picture itself are in fp32 or better."""
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

AUTO_INTEGRAL: Integral = 131072
"""What `auto` stands for: so many points cost no picture of the evaluation sets 0.005 dB (docs/weights.md)."""


def make_method(
    model: ModelLike = "default",
    *,
    device: str = "auto",
    ensemble: bool = False,
    alpha: AlphaBy = "operator",
    integral: str | int = "auto",
    memory: int | str | None = None,
    precision: Precision = "keep",
) -> Method:
    """Load the model, unless it is one, and check the rest."""
    if alpha not in get_args(AlphaBy):
        raise SRNOError(f"alpha {alpha!r}: choose {' or '.join(get_args(AlphaBy))}")
    return Method(
        integral=_integral(integral),
        memory=None if memory is None else parse_memory(memory),
        model=_place(model, device, precision),
        ensemble=ensemble,
        alpha=alpha,
    )


def _integral(given: str | int) -> Integral:
    if given == "auto":
        return AUTO_INTEGRAL
    if given == "exact":
        return "exact"
    if not str(given).isdecimal() or int(given) < 1:
        raise SRNOError(f"integral {given!r}: choose auto, exact or a number of points, such as 16384")
    return int(given)


def _place(model: ModelLike, device: str, precision: Precision) -> Model:
    if precision not in get_args(Precision):
        raise SRNOError(f"precision {precision!r}: choose {', '.join(get_args(Precision))}")
    if not isinstance(model, Model):
        return load(model, device=choose_device(device)).to(DTYPES.get(precision))
    here = next(model.parameters())
    # To move or convert it would change what the caller holds.
    if device != "auto" and choose_device(device).type != here.device.type:
        raise SRNOError(f"device {device!r}: the model is on {here.device.type}; move it with model.to({device!r})")
    if DTYPES.get(precision, here.dtype) != here.dtype:
        raise SRNOError(f"precision {precision!r}: the model is in {here.dtype}; convert it with model.to(...)")
    return model
