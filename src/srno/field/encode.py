"""Features of a picture, computed in strips if the whole picture needs too much memory."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from srno.operator.encoder import radius


def encode(encoder: nn.Module, image: Tensor, rows: int, progress: Callable[[float], None] | None = None) -> Tensor:
    """image (1, 3, h, w) → features (h, w, C), in strips of `rows` with exact halos.

    A strip includes the encoder's radius beyond each edge, so that its features are those of the whole picture.
    """
    halo = radius(encoder)
    height, width = image.shape[-2:]
    image = image.contiguous(memory_format=torch.channels_last)
    features = image.new_empty(0)
    strips = [(top, min(top + rows, height)) for top in range(0, height, rows)]
    extended = [(max(0, top - halo), min(height, bottom + halo)) for top, bottom in strips]
    if progress is not None:
        encoder = _with_progress(encoder, width * sum(last - first for first, last in extended), progress)
    for (top, bottom), (first, last) in zip(strips, extended, strict=True):
        strip: Tensor = encoder(image[:, :, first:last])[0, :, top - first : bottom - first].permute(1, 2, 0)
        if top == 0:
            features = strip.new_empty(height, width, strip.shape[-1])
        features[top:bottom] = strip
    return features


def _with_progress(encoder: nn.Module, pixels: int, progress: Callable[[float], None]) -> nn.Module:
    """Return a copy of the encoder with shared parameters that reports the share of `pixels` it has processed."""
    # Hooks belong to a module, and other threads may use this one: register them on a copy.
    copied = copy.deepcopy(encoder, {id(tensor): tensor for tensor in (*encoder.parameters(), *encoder.buffers())})
    layers = [module for module in copied.modules() if isinstance(module, nn.Conv2d)]
    total, done = pixels * sum(layer.weight.numel() for layer in layers), 0

    def advance(layer: nn.Module, _given: object, out: Tensor) -> None:
        nonlocal done
        assert isinstance(layer, nn.Conv2d)
        done += out.shape[-2] * out.shape[-1] * layer.weight.numel()
        progress(done / total)

    for layer in layers:
        layer.register_forward_hook(advance)
    return copied
