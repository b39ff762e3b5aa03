"""Degradations: from an HR crop to the LR crop that the operator takes. Each table entry is a `--degradation`."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from srno.errors import SRNOError

PixelArray = NDArray[np.uint8]

REDUCTIONS = (Image.Resampling.BICUBIC, Image.Resampling.BOX, Image.Resampling.LANCZOS)
SUBSAMPLINGS = ("4:4:4", "4:2:2", "4:2:0", "4:2:0")
"""Of JPEG's colours, each as likely as its place in the list: most cameras and phones write 4:2:0."""
JPEG_BLOCK = 16
"""Pixels of JPEG's largest coding unit, that of 4:2:0; the grid of a crop may begin anywhere in it."""


@dataclass(frozen=True, kw_only=True)
class PhotoSettings:
    """How strong the degradation `photo` is: ranges of which each sample draws its own values."""

    jpeg_min: int = 30
    """Lowest JPEG quality."""
    jpeg_max: int = 98
    """Highest JPEG quality."""
    jpeg_share: float = 0.9
    """Share of the samples that are compressed at all."""
    jpeg_twice: float = 0.25
    """Share of these that are compressed a second time, with another grid and quality."""
    blur: float = 0.7
    """Largest standard deviation of a Gaussian blur, in LR pixels; half of the samples have none."""
    noise: float = 6.0
    """Largest standard deviation of the noise at white, in levels of 255; half of the samples have none."""

    def __post_init__(self) -> None:
        if not 1 <= self.jpeg_min <= self.jpeg_max <= 100:
            raise SRNOError(f"jpeg_min {self.jpeg_min}, jpeg_max {self.jpeg_max}: need 1 ≤ jpeg_min ≤ jpeg_max ≤ 100")
        for name in ("jpeg_share", "jpeg_twice"):
            if not 0 <= getattr(self, name) <= 1:
                raise SRNOError(f"{name} {getattr(self, name):g} is not a share; give a number from 0 to 1")
        if min(self.blur, self.noise) < 0:
            raise SRNOError(f"blur {self.blur:g}, noise {self.noise:g}: must not be negative")


Degradation = Callable[[PixelArray, int, np.random.Generator, PhotoSettings], PixelArray]
"""HR crop (n, n, 3), LR side p, the sample's random generator, settings -> LR crop (p, p, 3)."""


def bicubic(crop: PixelArray, side: int, rng: np.random.Generator, settings: PhotoSettings) -> PixelArray:  # noqa: ARG001
    """Downscale with Pillow's antialiased bicubic, as the published recipe does."""
    return np.asarray(Image.fromarray(crop).resize((side, side), Image.Resampling.BICUBIC))


def photo(crop: PixelArray, side: int, rng: np.random.Generator, settings: PhotoSettings) -> PixelArray:
    """Downscale by one of three filters, then blur, add camera-like noise and compress as JPEG, each by chance."""
    reduction = REDUCTIONS[rng.integers(len(REDUCTIONS))]
    image = Image.fromarray(crop).resize((side, side), reduction)
    if settings.blur and rng.random() < 0.5:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0, settings.blur)))
    lr = np.asarray(image)
    if settings.noise and rng.random() < 0.5:
        lr = _add_noise(lr, rng.uniform(0, settings.noise), rng)
    if rng.random() < settings.jpeg_share:
        for _ in range(2 if rng.random() < settings.jpeg_twice else 1):
            lr = _compress(lr, rng, settings)
    return lr


def _add_noise(lr: PixelArray, sigma: float, rng: np.random.Generator) -> PixelArray:
    """Add noise whose variance grows with the light, as a sensor's does: a quarter of it remains at black."""
    share = 0.25 + 0.75 * lr / 255
    noisy = lr + sigma * np.sqrt(share) * rng.standard_normal(lr.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def _compress(lr: PixelArray, rng: np.random.Generator, settings: PhotoSettings) -> PixelArray:
    """Compress as JPEG and decode, with the grid of blocks at a random offset."""
    top, left = rng.integers(JPEG_BLOCK, size=2)
    quality = int(rng.integers(settings.jpeg_min, settings.jpeg_max + 1))
    subsampling = SUBSAMPLINGS[rng.integers(len(SUBSAMPLINGS))]
    height, width = lr.shape[:2]
    margins = [(before, -(before + n) % JPEG_BLOCK) for before, n in ((int(top), height), (int(left), width))]
    padded = np.pad(lr, (*margins, (0, 0)), mode="symmetric")
    stream = io.BytesIO()
    Image.fromarray(padded).save(stream, "JPEG", quality=quality, subsampling=subsampling)
    with Image.open(stream) as image:
        decoded = np.asarray(image.convert("RGB"))
    return decoded[top : top + height, left : left + width]


DEGRADATIONS: Mapping[str, Degradation] = MappingProxyType({"bicubic": bicubic, "photo": photo})
