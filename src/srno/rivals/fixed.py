"""EDSR and RDN as published, for one integer factor: a pixel-shuffle tail computes the whole picture."""

import torch
from torch import Tensor, nn

from srno.config import EDSRConfig, EncoderConfig, FixedScaleConfig, RDNConfig
from srno.operator.edsr import EDSR
from srno.operator.encoder import make_encoder
from srno.operator.model import Model, PointDecoder
from srno.operator.projection import bilinear

DIV2K_MEAN = (0.4488, 0.4371, 0.4040)
"""Mean colour of the training pictures of EDSR, in [0, 1]."""


class ShiftedEDSR(EDSR):
    """EDSR that subtracts a mean colour first, so that the padding around the picture has that colour, not grey."""

    def __init__(self, config: EDSRConfig) -> None:
        super().__init__(config)
        self.mean: Tensor
        self.register_buffer("mean", 2 * torch.tensor(DIV2K_MEAN) - 1)

    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image - self.mean.reshape(3, 1, 1))


class FixedScale(Model):
    """A network for ×s; forward() interpolates between the pixel centres of its output.

    At pixel centres of the ×s grid forward() gives the network's own values, elsewhere bilinear means of the nearest
    four. This defines the function, it does not support other scales: for these, resize the output of `upscale` of the
    nearest larger network. The cell is ignored.
    """

    config: FixedScaleConfig

    def __init__(self, config: FixedScaleConfig) -> None:
        if config.mean_shift and isinstance(config.encoder, EDSRConfig):
            super().__init__(config, ShiftedEDSR(config.encoder))
        else:
            super().__init__(config, make_encoder(config.encoder))
        self.tail = _make_tail(config.encoder, config.scale)

    def upscale(self, image: Tensor) -> Tensor:
        """(B, 3, h, w) → (B, 3, s·h, s·w), both in [-1, 1], not clamped."""
        return self.tail(self.encoder(image))

    def decode(self, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:  # noqa: ARG002
        """features (B, C, h, w), image (B, 3, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3)."""
        return bilinear(self.tail(features), coords).to(image.dtype)

    def prepare(self, features: Tensor, image: Tensor, cell: Tensor) -> PointDecoder:  # noqa: ARG002
        """Return the same function, with the network's output computed once."""
        picture = self.tail(features)
        return lambda coords: bilinear(picture, coords).to(image.dtype)


def _make_tail(config: EncoderConfig, scale: int) -> nn.Sequential:
    """Convolutions to s² maps each and pixel shuffles, ×4 as ×2 twice, then a convolution to RGB."""
    width = config.growth if isinstance(config, RDNConfig) else config.channels
    layers: list[nn.Module] = []
    channels = config.channels
    for factor in (2, 2) if scale == 4 else (scale,):
        layers += [nn.Conv2d(channels, width * factor**2, 3, padding=1), nn.PixelShuffle(factor)]
        channels = width
    return nn.Sequential(*layers, nn.Conv2d(width, 3, 3, padding=1))
