"""EDSR as an encoder: head, residual blocks, a closing convolution and a long skip."""

from torch import Tensor, nn

from srno.config import EDSRConfig


class ResidualBlock(nn.Module):
    """x + conv(relu(conv(x)))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv2(self.conv1(x).relu_()).add_(x)


class EDSR(nn.Module):
    """(B, 3, h, w) pictures to (B, channels, h, w) features."""

    def __init__(self, config: EDSRConfig) -> None:
        super().__init__()
        channels = config.channels
        self.head = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(ResidualBlock(channels) for _ in range(config.blocks)))
        self.tail = nn.Conv2d(channels, channels, 3, padding=1)
        self.channels = channels
        self.radius = 2 * config.blocks + 2
        """Pixels beyond a window that its features depend on: one for each 3×3 convolution in a row."""
        self.live_channels = 6 * channels
        """Channels in memory at once in the forward pass, with a margin for the convolutions' copies."""

    def forward(self, image: Tensor) -> Tensor:
        shallow = self.head(image)
        return shallow + self.tail(self.blocks(shallow))
