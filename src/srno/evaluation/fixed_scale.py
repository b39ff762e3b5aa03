"""Networks of a fixed scale at every scale: the nearest larger one, and a downscale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srno.errors import SRNOError
from srno.evaluation.protocols import Scale
from srno.imaging.resize import matlab_bicubic_float
from srno.inference.upscaler import Upscaler
from srno.rivals.fixed import FixedScale


@dataclass(frozen=True)
class FixedScaleUpscaler:
    """One or more networks of the same kind, each for one factor, as a single method."""

    networks: tuple[FixedScale, ...]
    """by rising factor"""
    memory: int | None = None
    ensemble: bool = False

    @property
    def largest(self) -> int:
        """Beyond this factor there is nothing to scale down."""
        return self.networks[-1].config.scale

    def nearest_larger(self, factor: float) -> FixedScale:
        """The network with the smallest factor that is at least this one."""
        for network in self.networks:
            if network.config.scale >= factor:
                return network
        raise SRNOError(f"--scales {factor:g}: the largest network of a fixed scale given here is for ×{self.largest}")

    def note(self, scales: Sequence[Scale]) -> str:
        """What was done at the scales for which there is no network."""
        known = [network.config.scale for network in self.networks]
        found = {scale: self.nearest_larger(max(scale.y, scale.x)).config.scale for scale in scales}
        others = [
            f"×{scale} by the network for ×{factor}"
            for scale, factor in found.items()
            if scale.y != scale.x or scale.x not in known
        ]
        return f"{', '.join(others)} and a bicubic downscale" if others else ""

    def __call__(
        self, lr: NDArray[np.float32], *, size: tuple[int, int], scale: tuple[float, float], cell_clip: bool
    ) -> NDArray[np.float32]:
        """`lr` (h, w, 3) in [0, 1] → (*size, 3), not clamped; `size` is (height, width)."""
        network = self.nearest_larger(max(scale))
        factor = network.config.scale
        larger = (lr.shape[0] * factor, lr.shape[1] * factor)
        # at the centres of the network's own pixels, a render is the network's picture
        upscaler = Upscaler(network, memory=self.memory, ensemble=self.ensemble)
        picture = upscaler(lr, size=larger, scale=(factor, factor), cell_clip=cell_clip)
        return picture if size == larger else matlab_bicubic_float(picture, size)
