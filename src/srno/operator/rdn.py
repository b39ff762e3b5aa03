"""RDN as an encoder: residual dense blocks whose outputs are fused locally, then globally."""

import torch
from torch import Tensor, nn

from srno.config import RDNConfig


class ResidualDenseBlock(nn.Module):
    """Each convolution reads the outputs of all earlier ones; a 1×1 convolution fuses them; the input is added."""

    def __init__(self, config: RDNConfig) -> None:
        super().__init__()
        widths = [config.channels + i * config.growth for i in range(config.layers + 1)]
        self.convs = nn.ModuleList(nn.Conv2d(width, config.growth, 3, padding=1) for width in widths[:-1])
        self.fusion = nn.Conv2d(widths[-1], config.channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        dense = x
        for conv in self.convs:
            dense = torch.cat([dense, conv(dense).relu_()], dim=1)
        return x + self.fusion(dense)


class RDN(nn.Module):
    """(B, 3, h, w) pictures to (B, channels, h, w) features."""

    def __init__(self, config: RDNConfig) -> None:
        super().__init__()
        channels = config.channels
        self.shallow1 = nn.Conv2d(3, channels, 3, padding=1)
        self.shallow2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.blocks = nn.ModuleList(ResidualDenseBlock(config) for _ in range(config.blocks))
        self.fusion1 = nn.Conv2d(config.blocks * channels, channels, 1)
        self.fusion2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.channels = channels
        self.radius = config.blocks * config.layers + 3
        """Pixels beyond a window that its features depend on: one for each 3×3 convolution in a row."""
        dense = channels + config.layers * config.growth
        self.live_channels = config.blocks * channels + 2 * dense + 4 * channels
        """Channels in memory at once in the forward pass, with a margin for the convolutions' copies."""

    def forward(self, image: Tensor) -> Tensor:
        shallow = self.shallow1(image)
        x = self.shallow2(shallow)
        outputs: list[Tensor] = []
        for block in self.blocks:
            x = block(x)
            outputs.append(x)
        return shallow + self.fusion2(self.fusion1(torch.cat(outputs, dim=1)))
