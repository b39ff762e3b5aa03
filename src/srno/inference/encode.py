"""Features of a picture, strip by strip when all at once would take too much memory."""

import torch
from torch import Tensor

from srno.operator.edsr import EDSR
from srno.operator.rdn import RDN


def live_activations(encoder: EDSR | RDN) -> int:
    """Channels that are alive at once in the encoder's forward, with a margin for the convolution's own copies."""
    if isinstance(encoder, RDN):
        dense = encoder.blocks[0].fusion.in_channels  # type: ignore[union-attr]
        return encoder.fusion1.in_channels + 2 * int(dense) + 4 * encoder.fusion1.out_channels
    return 6 * encoder.tail.out_channels


def encode(encoder: EDSR | RDN, image: Tensor, rows: int) -> Tensor:
    """image (1, 3, h, w) → features (h, w, C), in strips of `rows` with exact halos.

    A strip sees `halo` rows beyond each edge, so that its features are those of the whole picture.
    """
    height = image.shape[-2]
    image = image.contiguous(memory_format=torch.channels_last)
    strips: list[Tensor] = []
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        first, last = max(0, top - encoder.halo), min(height, bottom + encoder.halo)
        strip = encoder(image[:, :, first:last])[0, :, top - first : bottom - first]
        strips.append(strip.permute(1, 2, 0).contiguous())
    return torch.cat(strips)
