"""What `srno.upscale` takes as a picture: checks, and files from paths, bytes and file objects."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeGuard, cast

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from srno.errors import SRNOError
from srno.imaging.picture import Picture
from srno.imaging.pillow import from_pillow, pillow_compression
from srno.imaging.read import DECODER_ERRORS, read
from srno.upscaling.enlarge import Array

FileInput: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
ImageInput: TypeAlias = FileInput | Image.Image | Array | Tensor

ACCEPTED_INPUTS = "a path, bytes, a binary file, a PIL image, a numpy array or a torch tensor"


def is_file_input(image: object) -> TypeGuard[FileInput]:
    """Whether this is a file: a path, its content, or an open file."""
    return isinstance(image, str | os.PathLike | bytes | bytearray | memoryview) or callable(
        getattr(image, "read", None)
    )


def is_several(image: object) -> bool:
    """Whether this is a list, a tuple or an iterator of pictures."""
    return isinstance(image, list | tuple | Iterator) and not is_file_input(image)


def file_content(image: FileInput) -> Path | bytes:
    """The path of a file, or the content of bytes and open files."""
    if isinstance(image, str | os.PathLike):
        return Path(image)
    if isinstance(image, bytes | bytearray | memoryview):
        return bytes(image)
    content: Any = image.read()
    if not isinstance(content, bytes):
        raise SRNOError(f"{type(image).__name__} is not a binary file; open it with mode 'rb'")
    return content


def open_image(image: FileInput | Image.Image | Array) -> Picture | Array:
    """Read a file or convert a PIL image, upright; an array stays."""
    if isinstance(image, Image.Image):
        try:
            return replace(from_pillow(ImageOps.exif_transpose(image)), compression=pillow_compression(image))
        except SRNOError:
            raise
        except (*DECODER_ERRORS, OSError) as error:  # Pillow decodes a file only now
            raise SRNOError(f"the PIL image cannot be read: {error}") from None
    return read(file_content(image)) if is_file_input(image) else cast(Array, image)


def check_kind(image: object) -> None:
    """Refuse what cannot be a picture, without opening files."""
    if isinstance(image, Tensor):
        _check_tensor(image)
    elif isinstance(image, np.ndarray):
        _check_array(cast(Array, image))
    elif isinstance(image, Image.Image):
        if 0 in image.size:
            raise SRNOError(f"a PIL image of {image.width}×{image.height} pixels is not a picture")
    elif not is_file_input(image):
        raise SRNOError(f"{type(image).__name__} is not a picture; give {ACCEPTED_INPUTS}")


def _check_tensor(image: Tensor) -> None:
    if image.ndim not in (3, 4) or image.shape[-3] != 3 or image.numel() == 0:
        raise SRNOError(f"a tensor of shape {tuple(image.shape)} is not a picture; give (3, h, w) or (B, 3, h, w)")
    if image.layout != torch.strided or image.is_meta:
        what = "without values" if image.is_meta else "that are sparse"
        raise SRNOError(f"tensors {what} are not supported; give one with every value")
    if image.dtype != torch.uint8 and not image.is_floating_point():
        raise SRNOError(f"tensors of {image.dtype} are not supported; give uint8 or floats in [0, 1]")
    if image.is_floating_point():
        _check_range(float(image.detach().min()), float(image.detach().max()))


def _check_array(array: np.ndarray[Any, Any]) -> None:
    if array.ndim not in (2, 3) or 0 in array.shape or (array.ndim == 3 and array.shape[2] > 4):
        raise SRNOError(f"an array of shape {array.shape} is not a picture; give (h, w) or (h, w, 1 … 4), not empty")
    if array.dtype.kind == "f":
        _check_range(float(array.min()), float(array.max()))
    elif array.dtype.name not in ("uint8", "uint16"):
        raise SRNOError(f"arrays of {array.dtype} are not supported; give uint8, uint16 or floats in [0, 1]")


def _check_range(low: float, high: float) -> None:
    # Written so that NaN is refused too. The tolerance allows for rounding.
    if not (low >= -1e-3 and high <= 1 + 1e-3):
        raise SRNOError(f"floats must lie in [0, 1], and these go from {low:.4g} to {high:.4g}; scale or clip them")
