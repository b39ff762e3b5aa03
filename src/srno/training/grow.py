"""Start a larger model from a smaller one, without changing the function that it computes.

The rule: old outputs do not depend on new inputs. In every linear map and convolution the weights from new inputs to
old outputs are zero, the weights of new outputs are random, and new residual parts end in a zero map. So the new parts
compute features from the first step, do not change the output yet, and the gradient reaches the zero weights.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from srno.checkpoints.build import create_model
from srno.checkpoints.native import Checkpoint
from srno.config import ModelConfig, RDNConfig, SRNOConfig
from srno.errors import SRNOError
from srno.operator.lifting import POSITION_OCTAVES
from srno.operator.model import Model

LAST_OF_RESIDUAL = re.compile(r"encoder\.blocks\.\d+\.conv2\.|layers\.\d+\.W2\.")
"""Last layers of residual parts, zero in new ones. RDN needs none: only `fusion1` takes what new blocks compute."""

Kept = list[int]
"""Indices of the old channels among the new ones."""


@torch.no_grad()
def grow(checkpoint: Checkpoint, target: ModelConfig) -> Model:
    """Make a model of config `target` with the checkpoint's function; new parts have fresh weights."""
    old = checkpoint.model()
    if old.config == target:
        return old.train()
    _check(old.config, target)
    growth = _Growth(old.config, target)
    model = create_model(target).to(next(old.parameters()).dtype)
    state, before = model.state_dict(), old.state_dict()
    for name, tensor in state.items():
        if name not in before:
            if LAST_OF_RESIDUAL.match(name):
                tensor.zero_()
        elif tensor.shape == before[name].shape:
            tensor.copy_(before[name])
        else:
            _implant(before[name], tensor, *growth.kept(name))
    model.load_state_dict(state)
    return model


def _check(old: ModelConfig, new: ModelConfig) -> None:
    """Refuse a change of config that cannot keep the function, and name it."""
    if old.system != new.system or old.encoder.family != new.encoder.family:
        raise _refusal("system and encoder", f"{old.system}/{old.encoder.family}", f"{new.system}/{new.encoder.family}")
    can_grow = {"blocks"}
    if isinstance(old, SRNOConfig):
        can_grow |= {"channels", "layers", "growth", "d_z", "heads", "iterations", "projection_width"}
    for before, after in ((old.encoder, new.encoder), (old, new)):
        for name in (entry.name for entry in fields(before) if entry.name != "encoder"):
            was, is_ = getattr(before, name), getattr(after, name)
            if was != is_ and not (name in can_grow and is_ > was):
                raise _refusal(name, was, is_)
    if isinstance(old, SRNOConfig) and isinstance(new, SRNOConfig) and old.head_width != new.head_width:
        raise _refusal("the width of a head, d_z/heads,", old.head_width, new.head_width)


def _refusal(what: str, old: object, new: object) -> SRNOError:
    return SRNOError(
        f"--init: {what} cannot go from {old} to {new} without a change of function; choose another --preset"
    )


@dataclass(frozen=True)
class _Growth:
    """Indices of the old model's channels in the new one."""

    old: ModelConfig
    new: ModelConfig

    def kept(self, name: str) -> tuple[Kept | None, Kept | None]:
        """Indices of the old outputs and the old inputs of a tensor; None for all."""
        if name.startswith("encoder."):
            return self._encoder(name.removeprefix("encoder.").rsplit(".", 1)[0])
        if isinstance(self.old, SRNOConfig) and isinstance(self.new, SRNOConfig):
            return self._decoder(self.old, self.new, name.rsplit(".", 1)[0])
        return None, None

    def _encoder(self, module: str) -> tuple[Kept | None, Kept | None]:
        old, new = self.old.encoder, self.new.encoder
        channels = (old.channels, new.channels)
        if module in ("head", "shallow1"):
            return _kept([channels]), None
        if not (isinstance(old, RDNConfig) and isinstance(new, RDNConfig)):
            return _kept([channels]), _kept([channels])
        growth = (old.growth, new.growth)
        if module == "fusion1":
            return _kept([channels]), _kept([channels] * old.blocks)
        if module.endswith(".fusion"):
            return _kept([channels]), _kept([channels, *[growth] * old.layers])
        if number := re.search(r"\.convs\.(\d+)$", module):
            return _kept([growth]), _kept([channels, *[growth] * int(number[1])])
        return _kept([channels]), _kept([channels])

    def _decoder(self, old: SRNOConfig, new: SRNOConfig, module: str) -> tuple[Kept | None, Kept | None]:
        z, hidden = _kept([(old.d_z, new.d_z)]), _kept([(old.projection_width, new.projection_width)])
        channels = (old.encoder.channels, new.encoder.channels)
        if module == "lifting.linear":
            inputs = [(8, 8), *[channels] * 4, (2, 2)]
            if old.lifting == "nearest":
                inputs = [channels, (4 * POSITION_OCTAVES + 2, 4 * POSITION_OCTAVES + 2)]
            return z, _kept(inputs)
        if module == "projection.hidden":
            return hidden, z
        if module == "projection.rgb":
            return None, hidden
        if module.endswith("_norm"):
            return _kept([(old.heads, new.heads)]), None
        return z, z


def _kept(parts: Iterable[tuple[int, int]]) -> Kept:
    """Indices of old channels that lie in consecutive parts of (old, new) widths, at the start of each part."""
    kept: Kept = []
    start = 0
    for old, new in parts:
        kept += range(start, start + old)
        start += new
    return kept


def _implant(old: Tensor, new: Tensor, outputs: Kept | None, inputs: Kept | None) -> None:
    """Write the old tensor (outputs, [inputs, …]) into the new one; its weights for new inputs are zero."""
    rows = torch.arange(len(new)) if outputs is None else torch.tensor(outputs)
    if new.ndim == 1:
        new[rows] = old
        return
    columns = torch.arange(new.shape[1]) if inputs is None else torch.tensor(inputs)
    new[rows] = 0
    new[rows.unsqueeze(1), columns] = old
