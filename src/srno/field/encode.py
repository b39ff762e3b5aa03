"""Features of a picture, computed in tiles if the whole picture needs too much memory."""

import copy
from collections.abc import Callable
from itertools import pairwise, product

import torch
from torch import Tensor, nn

from srno.operator.encoder import check_features, radius

SMALL_PIXELS = 1 << 17
"""Pictures up to this size are encoded within a fraction of a second, and report their progress only when done."""


def encode(
    encoder: nn.Module, image: Tensor, tile: tuple[int, int], progress: Callable[[float], None] | None = None
) -> Tensor:
    """image (1, 3, h, w) → features (h, w, C), in tiles of (rows, columns) with exact halos.

    A tile includes the encoder's radius beyond each edge, so that its features are those of the whole picture.
    """
    halo = radius(encoder)
    height, width = image.shape[-2:]
    image = image.contiguous(memory_format=torch.channels_last)
    tiles = list(product(_spans(height, tile[0], halo), _spans(width, tile[1], halo)))
    small = height * width <= SMALL_PIXELS and len(tiles) == 1
    if progress is not None and not small:
        encoder = _with_progress(encoder, tile_pixels((height, width), tile, halo), progress)
    features = image.new_empty(0)
    for (rows, outer_rows), (columns, outer_columns) in tiles:
        inner = slice(rows.start - outer_rows.start, rows.stop - outer_rows.start)
        across = slice(columns.start - outer_columns.start, columns.stop - outer_columns.start)
        window = image[:, :, outer_rows, outer_columns]
        part = check_features(encoder, window, encoder(window))[0, :, inner, across].permute(1, 2, 0)
        if not features.numel():
            features = part.new_empty(height, width, part.shape[-1])
        features[rows, columns] = part
    if progress is not None and small:
        progress(1.0)
    return features


def tile_pixels(size: tuple[int, int], tile: tuple[int, int], halo: int) -> int:
    """Pixels that the encoder computes for a picture of `size`, the halos of its tiles included."""
    rows, columns = (sum(_length(outer) for _, outer in _spans(*axis, halo)) for axis in zip(size, tile, strict=True))
    return rows * columns


def _spans(side: int, length: int, halo: int) -> list[tuple[slice, slice]]:
    """Cut a side into equal spans of at most `length`, each with the same span and its halo."""
    count = -(-side // length)
    edges = [side * i // count for i in range(count + 1)]
    return [(slice(low, high), slice(max(0, low - halo), min(side, high + halo))) for low, high in pairwise(edges)]


def _length(span: slice) -> int:
    return span.stop - span.start


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
