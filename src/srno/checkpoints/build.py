"""Build the model that a config describes."""

from torch import nn

from srno.config import (
    FixedScaleConfig,
    LIIFConfig,
    LTEConfig,
    MetaSRConfig,
    MLPConfig,
    ModelConfig,
    SRNOConfig,
    preset,
)
from srno.errors import SRNOError
from srno.operator.model import Model
from srno.operator.srno import SRNO
from srno.rivals.fixed import FixedScale
from srno.rivals.liif import LIIF
from srno.rivals.lte import LTE
from srno.rivals.metasr import MetaSR
from srno.rivals.mlp import MLP


def create_model(preset_or_config: str | ModelConfig, *, encoder: nn.Module | None = None) -> Model:
    """Create a model of any system with fresh weights, from the name of a preset or a config.

    `encoder` is a custom encoder for SRNO, see `srno.SRNO`.

    >>> import srno
    >>> type(srno.create_model("liif/light")).__name__
    'LIIF'
    """
    config = preset(preset_or_config) if isinstance(preset_or_config, str) else preset_or_config
    if not isinstance(config, ModelConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SRNOError(f"{config!r} is neither a preset nor a config; srno.preset('light') gives one")
    if encoder is not None and not isinstance(config, SRNOConfig):
        raise SRNOError(f"encoder: only SRNO accepts a custom encoder; this model is {config.system}")
    match config:
        case SRNOConfig():
            return SRNO(config, encoder)
        case LIIFConfig():
            return LIIF(config)
        case LTEConfig():
            return LTE(config)
        case MetaSRConfig():
            return MetaSR(config)
        case MLPConfig():
            return MLP(config)
        case FixedScaleConfig():
            return FixedScale(config)
