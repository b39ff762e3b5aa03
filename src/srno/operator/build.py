"""From a config to the model that it describes."""

from srno.config import FixedScaleConfig, LIIFConfig, LTEConfig, MetaSRConfig, MLPConfig, ModelConfig, SRNOConfig
from srno.operator.model import Model
from srno.operator.srno import SRNO
from srno.rivals.fixed import FixedScale
from srno.rivals.liif import LIIF
from srno.rivals.lte import LTE
from srno.rivals.metasr import MetaSR
from srno.rivals.mlp import MLP


def build(config: ModelConfig) -> Model:
    """A model with fresh weights."""
    match config:
        case SRNOConfig():
            return SRNO(config)
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
