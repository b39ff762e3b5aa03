"""`srno.upscale`: a picture in, a larger one of the same kind out; a list in, a list out."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor

from srno.errors import SRNOError
from srno.imaging.picture import Picture
from srno.imaging.pillow import from_pillow, to_pillow
from srno.imaging.read import read
from srno.progress import Progress, part_of
from srno.upscaling.enlarge import Array, enlarge, enlarge_picture
from srno.upscaling.sizes import Fit, Request, Size, make_request
from srno.upscaling.upscaler import AlphaBy, ModelLike, Precision, Upscaler

Samples = TypeVar("Samples", np.uint8, np.uint16, np.float16, np.float32, np.float64)
ImageInput: TypeAlias = str | Path | Image.Image | Array | Tensor
ImageOutput: TypeAlias = Image.Image | Array | Tensor
InputKind = TypeVar("InputKind", bound=ImageInput)


class Options(TypedDict, total=False):
    """Keyword options of `upscale`."""

    scale: float | tuple[float, float] | None
    size: Size | None
    width: int | None
    height: int | None
    fit: Fit | None
    model: ModelLike
    device: str
    ensemble: bool
    alpha: AlphaBy
    integral: str | int
    memory: int | str | None
    precision: Precision
    progress: Progress | None


@overload
def upscale(image: Image.Image, **options: Unpack[Options]) -> Image.Image: ...
@overload
def upscale(image: NDArray[Samples], **options: Unpack[Options]) -> NDArray[Samples]: ...
@overload
def upscale(image: Tensor, **options: Unpack[Options]) -> Tensor: ...
@overload
def upscale(image: str | Path, **options: Unpack[Options]) -> Image.Image | NDArray[np.uint16]: ...
@overload
def upscale(image: list[InputKind] | tuple[InputKind, ...], **options: Unpack[Options]) -> list[ImageOutput]: ...
def upscale(
    image: ImageInput | list[InputKind] | tuple[InputKind, ...],
    *,
    scale: float | tuple[float, float] | None = None,
    size: Size | None = None,
    width: int | None = None,
    height: int | None = None,
    fit: Fit | None = None,
    model: ModelLike = "default",
    device: str = "auto",
    ensemble: bool = False,
    alpha: AlphaBy = "operator",
    integral: str | int = "auto",
    memory: int | str | None = None,
    precision: Precision = "auto",
    progress: Progress | None = None,
) -> ImageOutput | list[ImageOutput]:
    """Enlarge a picture, or several, by a factor or to a size, and return the same kind.

    Sides that become smaller are reduced by a bicubic filter: the model only enlarges.

    Parameters
    ----------
    image
        A path, a PIL image, a torch tensor (3, h, w) or (B, 3, h, w) of uint8 or floats in [0, 1], or an array (h, w)
        or (h, w, 1 … 4) of uint8, uint16 or floats in [0, 1]; two and four channels end in alpha. A tensor gives a
        tensor of the same type on its device, an array gives an array of the same type and layout. A PIL image gives
        one of 8 bits, or of 16 if it is 16-bit gray; its EXIF orientation is applied, and palettes and CMYK
        become RGB. A path gives a PIL image with profile, EXIF and resolution in its `info`, or an array of uint16 if
        the file has 16-bit colour or alpha, which no PIL image can hold. A list or tuple of these, in any mix, gives
        a list with one result each; the model is loaded once.
    scale
        A factor, or two for width and height; 2 if no size is given.
    size, fit
        (width, height) to fit into (`contain`, the default), to fill with the rest cut off (`cover`), or to take
        exactly and out of proportion (`stretch`).
    width, height
        One side; the other follows.
    model
        A shipped name, a path, or a model from `srno.load`, which saves loading it for every picture.
    device
        auto, cpu, cuda or mps.
    ensemble
        Average over eight flips and rotations: slightly better, eight times slower.
    alpha
        How transparency is enlarged: by the `operator` or `bicubic`.
    integral
        `exact`, a number of points to estimate the kernel integral from, or `auto`, 16,384 points.
    memory
        Memory budget such as "2G", in addition to picture and output; half of the free memory unless given.
    precision
        Precision of the products: fp32, bf16, fp16, or auto, the fastest on this machine. The picture and all sums stay
        in fp32. A model in another precision than fp32 is used as it is.
    progress
        Called with the finished share of all pictures together, from 0 to 1; may raise to cancel.

    Examples
    --------
    >>> import numpy as np, torch, srno
    >>> srno.upscale(np.zeros((8, 6, 3), np.uint8), scale=2.5).shape
    (20, 15, 3)
    >>> srno.upscale(torch.zeros(2, 3, 8, 6), size=(12, 16)).shape
    torch.Size([2, 3, 16, 12])
    """
    request = make_request(scale, size, width, height, fit)
    several = isinstance(image, list | tuple)
    images: list[ImageInput] = [*image] if several else [image]
    for number, one in enumerate(images, 1):
        with _numbered_errors(number if several else None):
            _check_kind(one)
    upscaler = Upscaler(
        model=model,
        device=device,
        ensemble=ensemble,
        alpha=alpha,
        integral=integral,
        memory=memory,
        precision=precision,
    )
    results: list[ImageOutput] = []
    for number, one in enumerate(images, 1):
        with _numbered_errors(number if several else None):
            results.append(_upscale(one, request, upscaler, part_of(progress, number - 1, len(images))))
    return results if several else results[0]


@contextmanager
def _numbered_errors(number: int | None) -> Generator[None]:
    """Prefix errors with the number of the picture."""
    try:
        yield
    except SRNOError as error:
        raise error if number is None else SRNOError(f"picture {number}: {error}") from None


def _upscale(image: ImageInput, request: Request, upscaler: Upscaler, progress: Progress | None) -> ImageOutput:
    if isinstance(image, Tensor):
        return _upscale_tensor(image, request, upscaler, progress)
    picture = _open(image)
    if not isinstance(picture, Picture):
        target = request.target((picture.shape[1], picture.shape[0]))
        colour, transparency = _split(picture)
        return _join(picture, *enlarge(colour, transparency, target, upscaler, picture.dtype, progress))
    large = enlarge_picture(picture, request.target(picture.size), upscaler, picture.bits, progress)
    if large.bits == 8:
        return to_pillow(large)
    return _sixteen_bit_gray(large) if large.channels == 1 else large.samples()


def _upscale_tensor(image: Tensor, request: Request, upscaler: Upscaler, progress: Progress | None) -> Tensor:
    """(3, h, w) or (B, 3, h, w) → the same kind at the requested size."""
    pictures = image.detach().cpu().reshape(-1, *image.shape[-3:]).permute(0, 2, 3, 1).numpy()
    target = request.target((image.shape[-1], image.shape[-2]))
    large = [
        enlarge(one, None, target, upscaler, one.dtype, part_of(progress, number, len(pictures)))[0]
        for number, one in enumerate(pictures)
    ]
    return (
        torch.from_numpy(np.stack(large)).permute(0, 3, 1, 2).reshape(*image.shape[:-2], *target.size[::-1]).to(image)
    )


def _open(image: str | Path | Image.Image | Array) -> Picture | Array:
    if isinstance(image, str | Path):
        return read(Path(image))
    return from_pillow(ImageOps.exif_transpose(image)) if isinstance(image, Image.Image) else image


def _check_kind(image: object) -> None:
    """Refuse what cannot be a picture, without opening files."""
    if isinstance(image, Tensor):
        _check_tensor(image)
    elif isinstance(image, np.ndarray):
        _check_array(cast(Array, image))
    elif not isinstance(image, str | Path | Image.Image):
        raise SRNOError(
            f"{type(image).__name__} is not a picture; give a path, a PIL image, a numpy array or a torch tensor"
        )


def _check_tensor(image: Tensor) -> None:
    if image.ndim not in (3, 4) or image.shape[-3] != 3 or image.numel() == 0:
        raise SRNOError(f"a tensor of shape {tuple(image.shape)} is not a picture; give (3, h, w) or (B, 3, h, w)")
    if image.dtype != torch.uint8 and not image.is_floating_point():
        raise SRNOError(f"tensors of {image.dtype} are not supported; give uint8 or floats in [0, 1]")
    if image.is_floating_point():
        _check_range(float(image.min()), float(image.max()))


def _check_range(low: float, high: float) -> None:
    # Written so that NaN is refused too. The tolerance allows for rounding.
    if not (low >= -1e-3 and high <= 1 + 1e-3):
        raise SRNOError(f"floats must lie in [0, 1], and these go from {low:.4g} to {high:.4g}; scale or clip them")


def _check_array(array: Array) -> None:
    if array.ndim not in (2, 3) or 0 in array.shape or (array.ndim == 3 and array.shape[2] > 4):
        raise SRNOError(f"an array of shape {array.shape} is not a picture; give (h, w) or (h, w, 1 … 4), not empty")
    if array.dtype.kind == "f":
        _check_range(float(array.min()), float(array.max()))
    elif array.dtype.name not in ("uint8", "uint16"):
        raise SRNOError(f"arrays of {array.dtype} are not supported; give uint8, uint16 or floats in [0, 1]")


def _split(array: Array) -> tuple[Array, Array | None]:
    """Split an array of one to four channels into colour (h, w, 1|3) and alpha (h, w)."""
    layered = array.reshape(*array.shape[:2], -1)
    colours = 1 if layered.shape[2] < 3 else 3
    return layered[..., :colours], layered[..., colours] if layered.shape[2] > colours else None


def _join(like: Array, colour: Array, alpha: Array | None) -> Array:
    """Join colour and alpha in the layout of `like`."""
    if alpha is not None:
        return np.concatenate([colour, alpha[..., None]], axis=2)
    return colour[..., 0] if like.ndim == 2 else colour


def _sixteen_bit_gray(picture: Picture) -> Image.Image:
    image = Image.fromarray(picture.colour[..., 0])
    image.info.update(to_pillow(replace(picture, colour=picture.colour[:1, :1])).info)
    return image
