"""The MLP of the paper's sampling ablation: the operator of -i with a pointwise network in place of its integrals.

The paper gives neither its size nor its layers; this is our reading of "MLP with position embedding".
"""

from torch import Tensor

from srno.config import MLPConfig, SRNOConfig
from srno.operator.encoder import make_encoder
from srno.operator.lifting import NearestLifting
from srno.operator.model import Model
from srno.operator.projection import bilinear
from srno.rivals.parts import Perceptron


class MLP(Model):
    """RGB(x) = perceptron([E(x̂), sin/cos(2^k π δ), c]) + bilinear skip, x̂ the nearest pixel."""

    config: MLPConfig
    adds_bilinear = True

    def __init__(self, config: MLPConfig) -> None:
        super().__init__(config, make_encoder(config.encoder))
        # the first of the `depth` hidden layers is the lifting of -i, followed by a ReLU
        self.lifting = NearestLifting(SRNOConfig(encoder=config.encoder, d_z=config.width, heads=1))
        self.perceptron = Perceptron(config.width, config.width, config.depth - 1, 3)

    def decode(self, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), image (B, 3, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3)."""
        hidden = self.lifting(features, coords, cell).relu()
        return (self.perceptron(hidden) + bilinear(image, coords)).to(image.dtype)
