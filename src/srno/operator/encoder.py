"""Encoders: modules from pictures (B, 3, h, w) to features (B, channels, h, w), with `channels` and `radius`."""

from typing import cast

from torch import Tensor, nn

from srno.config import CustomEncoderConfig, EDSRConfig, EncoderConfig, RDNConfig
from srno.errors import SRNOError
from srno.operator.edsr import EDSR
from srno.operator.rdn import RDN


class MissingEncoder(nn.Module):
    """Placeholder for a custom encoder that was not passed: its sizes are known, its weights are not."""

    def __init__(self, config: CustomEncoderConfig) -> None:
        super().__init__()
        self.channels, self.radius, self.module = config.channels, config.radius, config.module

    def forward(self, image: Tensor) -> Tensor:  # noqa: ARG002
        raise SRNOError(missing_encoder_message(self.module))


def make_encoder(config: EncoderConfig) -> nn.Module:
    """Build the encoder that a config describes, with fresh weights."""
    match config:
        case EDSRConfig():
            return EDSR(config)
        case RDNConfig():
            return RDN(config)
        case CustomEncoderConfig():
            return MissingEncoder(config)


def missing_encoder_message(module: str) -> str:
    """Error message for a model that needs a custom encoder."""
    return (
        f"this model has a custom encoder, {module}: pass an instance as encoder= in Python, or give --encoder {module}"
    )


def describe_encoder(encoder: nn.Module) -> CustomEncoderConfig:
    """Return the config of a custom encoder: its class, `channels` and `radius`."""
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
    return CustomEncoderConfig(module=f"{kind.__module__}:{kind.__qualname__}", **numbers)


def check_features(encoder: nn.Module, image: Tensor, features: Tensor) -> Tensor:
    """Refuse features that are not (B, channels, h, w) for pictures (B, 3, h, w); return them."""
    expected = (image.shape[0], channels(encoder), *image.shape[-2:])
    if tuple(features.shape) != expected:
        raise SRNOError(
            f"encoder {type(encoder).__qualname__} returns features of shape {tuple(features.shape)} for pictures of "
            f"shape {tuple(image.shape)}; they must be (batch, channels, height, width) = {expected}"
        )
    return features


def radius(encoder: nn.Module) -> int:
    """Pixels beyond a window that the features of the window depend on."""
    return cast(int, encoder.radius)


def channels(encoder: nn.Module) -> int:
    """Width of the features."""
    return cast(int, encoder.channels)


def live_channels(encoder: nn.Module) -> int:
    """Channels in memory at once in the forward pass, with a margin for the convolutions' copies."""
    return cast(int, getattr(encoder, "live_channels", 8 * channels(encoder)))
