"""The Super-Resolution Neural Operator, box by box: S = P ∘ K_T ∘ … ∘ K_1 ∘ L, plus the bilinear skip."""

from torch import Tensor, nn

from srno.config import SRNOConfig
from srno.operator.galerkin import GalerkinLayer
from srno.operator.lifting import InterpolationFreeLifting, NearestLifting
from srno.operator.model import Model, make_encoder
from srno.operator.projection import Projection, bilinear


class SRNO(Model):
    """Lifting, T Galerkin layers and projection on top of a convolutional encoder."""

    config: SRNOConfig

    def __init__(self, config: SRNOConfig) -> None:
        super().__init__(config, make_encoder(config.encoder))
        lifting = InterpolationFreeLifting if config.lifting == "interpolation-free" else NearestLifting
        self.lifting = lifting(config)
        self.layers = nn.ModuleList(GalerkinLayer(config) for _ in range(config.iterations))
        self.projection = Projection(config)

    def galerkin_layers(self) -> list[GalerkinLayer]:
        """The T layers, as what they are."""
        return [layer for layer in self.layers if isinstance(layer, GalerkinLayer)]

    def decode(self, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), image (B, 3, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3)."""
        z = self.lifting(features, coords, cell)
        for layer in self.layers:
            z = layer(z)
        return (self.projection(z) + bilinear(image, coords)).to(image.dtype)
