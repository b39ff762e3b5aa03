"""Features of a picture, strip by strip when all at once would take too much memory."""

import torch
from torch import Tensor

from srno.config import EncoderConfig, RDNConfig
from srno.operator.edsr import EDSR
from srno.operator.rdn import RDN


def live_channels(config: EncoderConfig) -> int:
    """Channels that are alive at once in the encoder's forward, with a margin for the convolutions' own copies."""
    if isinstance(config, RDNConfig):
        dense = config.channels + config.layers * config.growth
        return config.blocks * config.channels + 2 * dense + 4 * config.channels
    return 6 * config.channels


def encode(encoder: EDSR | RDN, image: Tensor, rows: int) -> Tensor:
    """image (1, 3, h, w) → features (h, w, C), in strips of `rows` with exact halos.

    A strip sees `halo` rows beyond each edge, so that its features are those of the whole picture.
    """
    height, width = image.shape[-2:]
    image = image.contiguous(memory_format=torch.channels_last)
    features = image.new_empty(0)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        first, last = max(0, top - encoder.halo), min(height, bottom + encoder.halo)
        strip: Tensor = encoder(image[:, :, first:last])[0, :, top - first : bottom - first].permute(1, 2, 0)
        if top == 0:
            features = strip.new_empty(height, width, strip.shape[-1])
        features[top:bottom] = strip
    return features
