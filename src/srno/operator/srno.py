"""The Super-Resolution Neural Operator: S = P ∘ K_T ∘ … ∘ K_1 ∘ L, plus the bilinear skip."""

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor, nn

from srno.config import SRNOConfig
from srno.errors import SRNOError
from srno.operator import fused
from srno.operator.encoder import describe_encoder, make_encoder
from srno.operator.galerkin import GalerkinLayer
from srno.operator.latent import LatentGrid
from srno.operator.lifting import InterpolationFreeLifting, NearestLifting
from srno.operator.model import Footprint, Model, PointDecoder
from srno.operator.projection import Projection, bilinear, make_skip
from srno.operator.sampling import GridDecoder, Sampling


class SRNO(Model):
    """Lifting, T Galerkin layers and projection on top of a convolutional encoder.

    `encoder` is any module from (B, 3, h, w) to (B, channels, h, w) with the attributes `channels` and
    `radius` (how many pixels beyond a window its features depend on); without it the encoder of the config is built.

    >>> import srno
    >>> config = srno.SRNOConfig(encoder=srno.EDSRConfig(channels=16, blocks=2), d_z=32, heads=4, projection_width=32)
    >>> sum(parameter.numel() for parameter in srno.SRNO(config).parameters())
    26419
    """

    config: SRNOConfig
    adds_bilinear = True

    def __init__(self, config: SRNOConfig, encoder: nn.Module | None = None) -> None:
        if not isinstance(config, SRNOConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SRNOError(f"config is {config!r}; give an srno.SRNOConfig, or take srno.create_model")
        if encoder is not None:
            config = config.with_encoder(describe_encoder(encoder))
        super().__init__(config, make_encoder(config.encoder) if encoder is None else encoder)
        lifting = InterpolationFreeLifting if config.lifting == "interpolation-free" else NearestLifting
        self.lifting = lifting(config)
        self.layers = nn.ModuleList(GalerkinLayer(config) for _ in range(config.iterations))
        self.projection = Projection(config)

    def kernel_layers(self) -> list[GalerkinLayer]:
        """The T Galerkin layers."""
        return [layer for layer in self.layers if isinstance(layer, GalerkinLayer)]

    def decode(self, features: Tensor, image: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), image (B, 3, h, w), coords (B, n, 2), cell (B, 2) → RGB (B, n, 3)."""
        z = self.lifting(features, coords, cell)
        for layer in self.layers:
            z = layer(z)
        return (self.projection(z) + bilinear(image, coords)).to(image.dtype)

    def prepare(self, features: Tensor, image: Tensor, cell: Tensor) -> PointDecoder:
        """Return the same function in its fused form; the integrals are means over the coords of one call."""
        layers = [partial(fused.galerkin, layer) for layer in self.kernel_layers()]
        return lambda coords: self.at_points(features, image, coords, cell, layers)

    def lift_points(self, features: Tensor, coords: Tensor, cell: Tensor) -> Tensor:
        """features (B, C, h, w), coords (B, n, 2), cell (B, 2) → z_0 (B, n, d_z)."""
        return self.lifting.at_points(features, coords, cell)

    def at_points(
        self,
        features: Tensor,
        image: Tensor,
        coords: Tensor,
        cell: Tensor,
        layers: Sequence[Callable[[Tensor], Tensor]],
    ) -> Tensor:
        """RGB (B, n, 3) at coords (B, n, 2), with layers whose integrals are known."""
        z = self.lift_points(features, coords, cell)
        for layer in layers:
            z = layer(z)
        return (self.projection(z) + bilinear(image, coords)).to(image.dtype)

    def on_grid(self, features: Tensor, image: Tensor, sampling: Sampling, *, cell_clip: bool) -> GridDecoder:
        """Return the decoder of one picture on one grid: features (h, w, C), image (1, 3, h, w)."""
        cell = sampling.cell(clip=cell_clip, device=image.device)
        latent = self.lifting.on_grid(features, sampling, cell)
        return LatentGrid(latent, self.projection, make_skip(image, sampling))

    def footprint(self) -> Footprint:
        """Memory that the decoder needs, for planning."""
        d_z, neighbours = self.config.d_z, 4 if self.config.lifting == "interpolation-free" else 1
        return Footprint(
            point=6 * d_z + 2 * self.config.projection_width + 64,
            width=d_z,
            column=neighbours * d_z,
            latent=d_z if self.config.iterations > 1 else 0,
        )
