"""Find the dead units of an encoder, and give them a fresh start without changing the function that it computes.

A high rate can push all of a unit's responses below zero. The ReLU after it then answers nothing to any picture, no
gradient reaches its weights again, and the unit is lost; whole residual blocks are lost so, and the loss does not tell.
But nobody hears a dead unit: it may have new weights, as long as the convolution after it begins by ignoring it.
(Restarting such units during training is known as ReDo: Sokar et al., ICML 2023.)
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from srno.operator.edsr import EDSR, ResidualBlock


@torch.no_grad()
def dead_units(encoder: nn.Module, images: Tensor) -> list[Tensor]:
    """For each residual block the indices of the units that are nowhere above zero on images (B, 3, h, w).

    Only EDSR's blocks have units that are followed by nothing but a ReLU and one convolution; of other encoders
    nothing is said.
    """
    return [_is_dead(block, x) for block, x in _blocks(encoder, images)]


@torch.no_grad()
def revive(encoder: nn.Module, images: Tensor) -> list[Tensor]:
    """Restart, in place, the units that are dead on images (B, 3, h, w); returns which those are now, by block.

    Blocks that are lost altogether go to the end, where they have more to work on and disturb no block after them.
    """
    dead = dead_units(encoder, images)
    if not isinstance(encoder, EDSR):
        return dead
    fresh = [dead[number] for number in _move_lost_last(encoder, dead)]
    for units, (block, x) in zip(fresh, _blocks(encoder, images), strict=True):
        if len(units):
            _restart(block, units, x)
    return fresh


def hold(encoder: nn.Module, fresh: list[Tensor]) -> None:
    """Take the gradient from the filters of fresh units.

    What the block after them learns to take from random filters is of use soon; before that it is noise, and the
    quickest way to less of it would be to silence them again.
    """
    if isinstance(encoder, EDSR):
        for units, block in zip(fresh, encoder.blocks, strict=True):
            for parameter in block.get_submodule("conv1").parameters():
                if parameter.grad is not None:
                    parameter.grad[units] = 0


def _move_lost_last(encoder: EDSR, dead: list[Tensor]) -> list[int]:
    """Put the blocks without a sound behind the others; returns where each had been.

    All that such a block adds is its bias, which the block before it takes over. The first has none before it that
    the long skip does not hear, so it stays.
    """
    states = [{name: tensor.clone() for name, tensor in block.state_dict().items()} for block in encoder.blocks]
    kept, lost = list[int](), list[int]()
    for number, state in enumerate(states):
        if number and len(dead[number]) == len(state["conv2.bias"]):
            states[kept[-1]]["conv2.bias"] += state["conv2.bias"]
            state["conv2.bias"].zero_()
            lost.append(number)
        else:
            kept.append(number)
    for block, number in zip(encoder.blocks, kept + lost, strict=True):
        block.load_state_dict(states[number])
    return kept + lost


def _blocks(encoder: nn.Module, images: Tensor) -> Iterator[tuple[ResidualBlock, Tensor]]:
    """Each residual block and what it is given: (B, channels, h, w)."""
    if isinstance(encoder, EDSR):
        x = encoder.head(images)
        for block in encoder.blocks:
            assert isinstance(block, ResidualBlock)
            yield block, x
            x = block(x)


def _is_dead(block: ResidualBlock, x: Tensor) -> Tensor:
    return (block.conv1(x).amax((0, 2, 3)) <= 0).nonzero().flatten()


def _restart(block: ResidualBlock, units: Tensor, x: Tensor) -> None:
    """Random filters that are above zero about half of the time and respond about as strongly as x varies."""
    conv1, conv2 = block.conv1, block.conv2
    assert conv1.bias is not None
    filters = torch.randn(len(units), *conv1.weight.shape[1:], device=x.device, dtype=x.dtype)
    std, mean = torch.std_mean(F.conv2d(x, filters), (0, 2, 3))  # inside the pictures, away from the padding
    gain = x.std((0, 2, 3)).mean() / std
    conv1.weight[units] = filters * gain.reshape(-1, 1, 1, 1)
    conv1.bias[units] = -mean * gain
    conv2.weight[:, units] = 0
