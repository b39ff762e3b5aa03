"""Small rivals with random values in every parameter."""

from typing import Any, cast

import torch

from small_models import EDSR, RDN, random_model
from srno.config import FixedScaleConfig, LIIFConfig, LTEConfig, MetaSRConfig, MLPConfig, ModelConfig
from srno.operator.model import Model

POINTWISE: dict[str, ModelConfig] = {
    "liif": LIIFConfig(encoder=EDSR, width=9, depth=3),
    "liif-rdn": LIIFConfig(encoder=RDN, width=6, depth=1),
    "lte": LTEConfig(encoder=EDSR, frequencies=5, width=8, depth=2),
    "lte-rdn": LTEConfig(encoder=RDN, frequencies=3, width=6, depth=1),
    "metasr": MetaSRConfig(encoder=EDSR, width=7),
    "metasr-rdn": MetaSRConfig(encoder=RDN, width=4),
    "mlp": MLPConfig(encoder=EDSR, width=9, depth=3),
    "mlp-rdn": MLPConfig(encoder=RDN, width=6, depth=1),
}
FIXED: dict[str, ModelConfig] = {
    "edsr-x2": FixedScaleConfig(encoder=EDSR, scale=2),
    "edsr-x3-shifted": FixedScaleConfig(encoder=EDSR, scale=3, mean_shift=True),
    "edsr-x4": FixedScaleConfig(encoder=EDSR, scale=4),
    "rdn-x2": FixedScaleConfig(encoder=RDN, scale=2),
    "rdn-x3": FixedScaleConfig(encoder=RDN, scale=3),
    "rdn-x4": FixedScaleConfig(encoder=RDN, scale=4),
}
CONFIGS = POINTWISE | FIXED


def random_rival(config: ModelConfig, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> Model:
    """A rival in evaluation mode with random parameters, biases included."""
    return cast(Any, random_model)(config, seed=seed, dtype=dtype).to(dtype)
