"""Find the pictures of evaluation sets, and make or read the low-resolution partner of each.

Pictures are read with Pillow as 8-bit RGB (gray is expanded, alpha dropped); arrays are uint8 (h, w, 3), sizes (h, w).
"""

import hashlib
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from srno.errors import SRNOError
from srno.evaluation.metrics import SSIM_WINDOW
from srno.evaluation.protocols import Protocol, Scale
from srno.imaging.resize import matlab_bicubic, pillow_bicubic

PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm"})


_SELF_EX_SR = "https://github.com/jbhuang0604/SelfExSR (its data folder)"
PUBLIC_SETS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("Set5", "Set14", "B100", "BSD100", "Urban100"), _SELF_EX_SR),
        **dict.fromkeys(
            ("DIV2K", "DIV2K_valid", "DIV2K_valid_HR", "DIV2K_train_HR"), "https://data.vision.ee.ethz.ch/cvl/DIV2K"
        ),
    }
)
"""Where the sets of the literature come from."""


@dataclass(frozen=True)
class SetPicture:
    """A high-resolution picture and the folder of its ready low-resolution files."""

    name: str
    path: Path
    ready_folder: Path | None = None
    """holds X2, X3 …, with files named as the picture or with x2, x3 … after its stem"""

    def ready_path(self, scale: Scale) -> Path | None:
        """The ready low-resolution file of this scale, if there is one."""
        if self.ready_folder is None:
            return None
        folder = self.ready_folder / f"X{scale}"
        stems = (self.path.stem, f"{self.path.stem}x{scale}")
        candidates = [folder / f"{stem}{suffix}" for stem in stems for suffix in (self.path.suffix, ".png")]
        return next((path for path in candidates if path.is_file()), None)

    def digest(self, scale: Scale, protocol: Protocol) -> str:
        """A hash of the files that make the pair."""
        sha = hashlib.sha256(self.path.read_bytes())
        if protocol.kernel(scale) == "ready" and (ready := self.ready_path(scale)):
            sha.update(hashlib.sha256(ready.read_bytes()).digest())
        return sha.hexdigest()


@dataclass(frozen=True)
class PictureSet:
    """The pictures over which a mean is taken."""

    name: str
    pictures: tuple[SetPicture, ...]


def find_sets(data: Path) -> tuple[PictureSet, ...]:
    """The sets in `data`: a set folder (HR/ and perhaps LR_bicubic/X2 …), a folder of pictures, or a parent of such."""
    if not data.is_dir():
        raise SRNOError(f"--data {data} is not a folder{_where_it_is(data.name)}")
    root = data.resolve()
    found = _find_set(root)
    children = [] if found else [_find_set(folder) for folder in sorted(root.iterdir()) if folder.is_dir()]
    sets = (found,) if found else tuple(child for child in children if child)
    if not sets:
        kinds = ", ".join(sorted(suffix[1:] for suffix in PICTURE_SUFFIXES))
        raise SRNOError(f"--data {data} has no pictures ({kinds}), neither itself, nor in HR/, nor one folder below")
    return sets


def _where_it_is(name: str) -> str:
    """Say where the sets of the literature come from; empty for other names."""
    known = next((known for known in PUBLIC_SETS if known.lower() == name.lower()), None)
    if known is None:
        return ""
    return f"; {known} is not part of srno: download it from {PUBLIC_SETS[known]}, and give the folder of its pictures"


def _find_set(folder: Path) -> PictureSet | None:
    """The set in this folder itself, or None."""
    root = folder.parent if folder.name == "HR" else folder
    hr = root / "HR" if (root / "HR").is_dir() else root
    paths = sorted(path for path in hr.iterdir() if path.suffix.lower() in PICTURE_SUFFIXES and path.is_file())
    ready = root / "LR_bicubic"
    pictures = tuple(SetPicture(path.name, path, ready if ready.is_dir() else None) for path in paths)
    return PictureSet(root.name, pictures) if pictures else None


def reason_to_skip(picture: SetPicture, scale: Scale, protocol: Protocol) -> str | None:
    """Why this picture cannot be scored at this scale, or None; reads only headers, so it is fast."""
    full = read_size(picture.path)
    cropped = centre_size(full, protocol.max_pixels)
    lr_size = scale.lr_size(cropped)
    if protocol.kernel(scale) == "ready":
        ready = picture.ready_path(scale)
        if ready is None:
            return "no ready LR file"
        lr_size = read_size(ready)
    hr_size = scale.hr_size(lr_size)
    if hr_size[0] > cropped[0] or hr_size[1] > cropped[1]:
        return f"the ready LR file of {_wxh(lr_size)} does not fit into {_wxh(cropped)}"
    border = protocol.border.pixels(scale)
    if min(hr_size[0] - 2 * border[0], hr_size[1] - 2 * border[1]) < SSIM_WINDOW or min(lr_size) < 1:
        crop = "" if cropped == full else f", cut to {_wxh(cropped)},"
        return f"{_wxh(full)}{crop} is too small, less than {SSIM_WINDOW} px are left within the border"
    return None


def load_pair(picture: SetPicture, scale: Scale, protocol: Protocol) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The low-resolution picture (h, w, 3) and the truth (H, W, 3), cut at the top left to scale times the LR size."""
    hr = centre_crop(read_rgb(picture.path), protocol.max_pixels)
    kernel = protocol.kernel(scale)
    ready = picture.ready_path(scale) if kernel == "ready" else None
    if ready is not None:
        lr = read_rgb(ready)
        height, width = scale.hr_size(_size(lr))
        return compress(lr, protocol.jpeg), hr[:height, :width]
    lr_size = scale.lr_size(_size(hr))
    height, width = scale.hr_size(lr_size)
    truth = np.ascontiguousarray(hr[:height, :width])
    resize = matlab_bicubic if kernel == "matlab" else pillow_bicubic
    return compress(resize(truth, lr_size), protocol.jpeg), truth


def compress(image: NDArray[np.uint8], quality: int | None) -> NDArray[np.uint8]:
    """Save (h, w, 3) as JPEG of this quality with 4:2:0 and decode it; None leaves it as it is."""
    if quality is None:
        return image
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality, subsampling="4:2:0")
    with Image.open(stream) as compressed:
        return np.array(compressed)


def centre_size(size: tuple[int, int], max_pixels: int | None) -> tuple[int, int]:
    """The size of the centre crop with the same proportions and at most `max_pixels`."""
    height, width = size
    if max_pixels is None or height * width <= max_pixels:
        return size
    factor = math.sqrt(max_pixels / (height * width))
    return max(1, math.floor(height * factor)), max(1, math.floor(width * factor))


def centre_crop(image: NDArray[np.uint8], max_pixels: int | None) -> NDArray[np.uint8]:
    """Crop (h, w, 3) around its centre, see `centre_size`."""
    height, width = centre_size(_size(image), max_pixels)
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    return image[top : top + height, left : left + width]


def read_size(path: Path) -> tuple[int, int]:
    """(h, w) from the file's header."""
    with _open(path) as image:
        return image.height, image.width


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """An 8-bit picture as RGB: (h, w, 3)."""
    with _open(path) as image:
        if image.mode in ("F", "I") or image.mode.startswith("I;"):
            raise SRNOError(f"{path} has more than 8 bits per value; the protocols are defined for 8-bit pictures")
        try:
            return np.array(image.convert("RGB"))
        except OSError as error:
            raise SRNOError(f"{path} cannot be read: {error}") from None


def _open(path: Path) -> Image.Image:
    try:
        return Image.open(path)
    except (UnidentifiedImageError, OSError) as error:
        reason = "not a picture" if isinstance(error, UnidentifiedImageError) else str(error)
        raise SRNOError(f"{path} cannot be read: {reason}") from None


def _size(image: NDArray[np.uint8]) -> tuple[int, int]:
    return image.shape[0], image.shape[1]


def _wxh(size: tuple[int, int]) -> str:
    """Format (h, w) as width×height."""
    return f"{size[1]}×{size[0]}"
