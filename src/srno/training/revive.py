"""Find the dead units of an encoder, and restart them without changing the function that it computes.

A high learning rate can push all responses of a unit below zero. The ReLU after it is then zero for every picture, no
gradient reaches the unit's weights, and it never recovers. Whole residual blocks die like this, and the loss does not
show it. A dead unit adds nothing to the output, so it may take new weights as long as its weights in the next
convolution start at zero.
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

    Only EDSR's blocks have units that are followed by just a ReLU and one convolution; for other encoders the list is
    empty.
    """
    return [_dead_units_of(block, x) for block, x in _blocks(encoder, images)]


@torch.no_grad()
def revive(encoder: nn.Module, images: Tensor) -> list[Tensor]:
    """Restart, in place, the units that are dead on images (B, 3, h, w); returns their indices by block.

    Blocks in which all units are dead move to the end: there they see richer features and disturb no later block.
    """
    dead = dead_units(encoder, images)
    if not isinstance(encoder, EDSR):
        return dead
    fresh = [dead[number] for number in _move_dead_blocks_last(encoder, dead)]
    for units, (block, x) in zip(fresh, _blocks(encoder, images), strict=True):
        if len(units):
            _restart(block, units, x)
    return fresh


def hold(encoder: nn.Module, fresh: list[Tensor]) -> None:
    """Zero the gradient of the filters of fresh units.

    The next layers need some steps before they can use random filters. Until then these add noise, and the gradient
    would reduce it fastest by making the units dead again.
    """
    if isinstance(encoder, EDSR):
        for units, block in zip(fresh, encoder.blocks, strict=True):
            for parameter in block.get_submodule("conv1").parameters():
                if parameter.grad is not None:
                    parameter.grad[units] = 0


def _move_dead_blocks_last(encoder: EDSR, dead: list[Tensor]) -> list[int]:
    """Move dead blocks behind the others; returns the old index of each block.

    A dead block adds only its bias, which moves to the block before it. The first block stays: before it is only the
    head, whose output also feeds the long skip.
    """
    states = [{name: tensor.clone() for name, tensor in block.state_dict().items()} for block in encoder.blocks]
    kept, moved = list[int](), list[int]()
    for number, state in enumerate(states):
        if number and len(dead[number]) == len(state["conv2.bias"]):
            states[kept[-1]]["conv2.bias"] += state["conv2.bias"]
            state["conv2.bias"].zero_()
            moved.append(number)
        else:
            kept.append(number)
    for block, number in zip(encoder.blocks, kept + moved, strict=True):
        block.load_state_dict(states[number])
    return kept + moved


def _blocks(encoder: nn.Module, images: Tensor) -> Iterator[tuple[ResidualBlock, Tensor]]:
    """Each residual block and its input (B, channels, h, w)."""
    if isinstance(encoder, EDSR):
        x = encoder.head(images)
        for block in encoder.blocks:
            assert isinstance(block, ResidualBlock)
            yield block, x
            x = block(x)


def _dead_units_of(block: ResidualBlock, x: Tensor) -> Tensor:
    return (block.conv1(x).amax((0, 2, 3)) <= 0).nonzero().flatten()


def _restart(block: ResidualBlock, units: Tensor, x: Tensor) -> None:
    """Give units random filters with responses above zero about half of the time and a spread like that of x."""
    conv1, conv2 = block.conv1, block.conv2
    assert conv1.bias is not None
    filters = torch.randn(len(units), *conv1.weight.shape[1:], device=x.device, dtype=x.dtype)
    std, mean = torch.std_mean(F.conv2d(x, filters), (0, 2, 3))  # without padding, which would change the statistics
    gain = x.std((0, 2, 3)).mean() / std
    conv1.weight[units] = filters * gain.reshape(-1, 1, 1, 1)
    conv1.bias[units] = -mean * gain
    conv2.weight[:, units] = 0
