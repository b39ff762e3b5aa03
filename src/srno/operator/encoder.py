"""What an encoder is: any module from pictures (B, 3, h, w) to features (B, channels, h, w) that names two numbers."""

from typing import cast

from torch import Tensor, nn

from srno.config import EDSRConfig, EncoderConfig, OwnEncoderConfig, RDNConfig
from srno.errors import SRNOError
from srno.operator.edsr import EDSR
from srno.operator.rdn import RDN


class MissingEncoder(nn.Module):
    """Stands for an encoder of the user's own that was not given: its sizes are known, its weights are not."""

    def __init__(self, config: OwnEncoderConfig) -> None:
        super().__init__()
        self.channels, self.radius, self.module = config.channels, config.radius, config.module

    def forward(self, image: Tensor) -> Tensor:  # noqa: ARG002
        raise SRNOError(missing(self.module))


def make_encoder(config: EncoderConfig) -> nn.Module:
    """The encoder that a config describes, with fresh weights."""
    match config:
        case EDSRConfig():
            return EDSR(config)
        case RDNConfig():
            return RDN(config)
        case OwnEncoderConfig():
            return MissingEncoder(config)


def missing(module: str) -> str:
    """What to do about a model whose encoder is the user's own."""
    return f"this model has an encoder of its own, {module}; make one and give it as encoder="


def describe_encoder(encoder: nn.Module) -> OwnEncoderConfig:
    """The config of a user's own encoder: its class, `channels` and `radius`."""
    kind = type(encoder)
    numbers: dict[str, int] = {}
    for name in ("channels", "radius"):
        value = getattr(encoder, name, None)
        if type(value) is not int:
            raise SRNOError(
                f"encoder {kind.__qualname__} has {name} {value!r}; an encoder needs two whole numbers: channels, the "
                "width of its features, and radius, how many pixels beyond a window its features depend on"
            )
        numbers[name] = value
    return OwnEncoderConfig(module=f"{kind.__module__}:{kind.__qualname__}", **numbers)


def radius(encoder: nn.Module) -> int:
    """Pixels beyond a window that its features depend on."""
    return cast(int, encoder.radius)


def channels(encoder: nn.Module) -> int:
    """Width of the features."""
    return cast(int, encoder.channels)


def live_channels(encoder: nn.Module) -> int:
    """Channels that are alive at once in its forward, with a margin for the convolutions' own copies."""
    return cast(int, getattr(encoder, "live_channels", 8 * channels(encoder)))
