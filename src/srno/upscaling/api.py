"""`srno.upscale`: a picture in, a larger one of the same kind out; a list in, a list out."""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from srno.errors import SRNOError
from srno.imaging.picture import Picture
from srno.imaging.pillow import to_pillow
from srno.progress import Progress, part_of
from srno.upscaling.batch import upscale_file
from srno.upscaling.enlarge import Array, enlarge, enlarge_picture
from srno.upscaling.inputs import FileInput, ImageInput, check_kind, file_content, is_file_input, is_several, open_image
from srno.upscaling.sizes import Fit, Request, Size, make_request
from srno.upscaling.steps import BatchSettings
from srno.upscaling.upscaler import AlphaBy, ModelLike, Precision, Upscaler

Samples = TypeVar("Samples", np.uint8, np.uint16, np.float16, np.float32, np.float64)
ImageOutput: TypeAlias = Image.Image | Array | Tensor
InputKind = TypeVar("InputKind", bound=ImageInput)
Several: TypeAlias = list[InputKind] | tuple[InputKind, ...] | Iterator[InputKind]


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
    clean: str | float
    progress: Progress | None


@overload
def upscale(image: Image.Image, **options: Unpack[Options]) -> Image.Image: ...
@overload
def upscale(image: NDArray[Samples], **options: Unpack[Options]) -> NDArray[Samples]: ...
@overload
def upscale(image: Tensor, **options: Unpack[Options]) -> Tensor: ...
@overload
def upscale(  # pyright: ignore[reportOverlappingOverload] (an open file is an iterator of bytes too)
    image: FileInput, **options: Unpack[Options]
) -> Image.Image | NDArray[np.uint16]: ...
@overload
def upscale(
    image: FileInput,
    *,
    output: str | os.PathLike[str],
    quality: int | None = None,
    overwrite: bool = False,
    **options: Unpack[Options],
) -> Path: ...
@overload
def upscale(image: Several[InputKind], **options: Unpack[Options]) -> list[ImageOutput]: ...
def upscale(
    image: ImageInput | Several[InputKind],
    *,
    output: str | os.PathLike[str] | None = None,
    quality: int | None = None,
    overwrite: bool = False,
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
    clean: str | float = "auto",
    progress: Progress | None = None,
) -> ImageOutput | list[ImageOutput] | Path:
    """Enlarge a picture, or several, by a factor or to a size, and return the same kind.

    Sides that become smaller are reduced by a bicubic filter: the model only enlarges.

    Parameters
    ----------
    image
        A path, the bytes of a file, a binary file object, a PIL image, a torch tensor (3, h, w) or (B, 3, h, w) of
        uint8 or floats in [0, 1], or an array (h, w) or (h, w, 1 … 4) of uint8, uint16 or floats in [0, 1]; two and
        four channels end in alpha. A tensor gives a tensor of the same type on its device, an array gives an array of
        the same type and layout. A PIL image gives one of 8 bits, or of 16 if it is 16-bit gray; its EXIF orientation
        is applied, and palettes and CMYK become RGB. A path, bytes or a file object give a PIL image with profile, EXIF
        and resolution in its `info`, or an array of uint16 if the file has 16-bit colour or alpha, which no PIL image
        can hold. A list, tuple or iterator of these, in any mix, gives a list with one result each; the model is
        loaded once.
    output
        Write the result of a file to this file, folder or template with everything that the command keeps (16 bits,
        EXIF, profile, XMP, all frames), and return its path.
    quality, overwrite
        With `output`: the quality of JPEG, WebP, JPEG XL and AVIF, 1 to 100, and whether to replace a file that exists.
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
        `exact`, a number of points to estimate the kernel integral from, or `auto`: one in 32, 24,576 to 131,072.
    memory
        Memory budget such as "2G", in addition to picture and output; half of the free memory unless given.
    precision
        Precision of the products: fp32, bf16, fp16, or auto, the fastest on this machine. The picture and all sums stay
        in fp32. A model in another precision than fp32 is used as it is.
    clean
        How strongly to remove compression artefacts, from 0 to 1, or `auto`, which reads the compression from a JPEG,
        WebP, AVIF or HEIC file, or from a PIL image that was opened from a JPEG file, and is 0 for all else. Only
        for the model `light`, by name: a model that is loaded already is used as it is.
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
    if progress is not None and not callable(progress):
        raise SRNOError(f"progress {progress!r}: give a function that takes the finished share")
    several = is_several(image)
    images: list[ImageInput] = [*cast(Any, image)] if several else [cast(ImageInput, image)]
    for number, one in enumerate(images, 1):
        with _numbered_errors(number if several else None):
            check_kind(one)
    upscaler = Upscaler(
        model=model,
        device=device,
        ensemble=ensemble,
        alpha=alpha,
        integral=integral,
        memory=memory,
        precision=precision,
        clean=clean,
    )
    if output is not None:
        if several or not is_file_input(image):
            raise SRNOError("output is for one picture from a path, bytes or a file; save other results yourself")
        if not isinstance(output, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SRNOError(f"output {output!r}: give a path")
        if not isinstance(overwrite, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SRNOError(f"overwrite {overwrite!r}: give True or False")
        settings = BatchSettings(request=request, upscaler=upscaler, quality=_checked_quality(quality))
        return upscale_file(file_content(image), os.fspath(output), settings, overwrite=overwrite, progress=progress)
    if quality is not None or overwrite:
        raise SRNOError("quality and overwrite are for files: give output too")
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
    picture = open_image(image)
    if not isinstance(picture, Picture):
        target = request.target((picture.shape[1], picture.shape[0]))
        colour, transparency = _split(picture)
        return _join(picture, *enlarge(colour, transparency, target, upscaler, picture.dtype, progress))
    large = enlarge_picture(picture, request.target(picture.size), upscaler, picture.bits, progress)
    if large.bits == 8:
        return to_pillow(large)
    return _sixteen_bit_gray(large) if large.channels == 1 else large.samples()


def _checked_quality(quality: int | None) -> int | None:
    if quality is not None and (isinstance(quality, bool) or quality not in range(1, 101)):
        raise SRNOError(f"quality {quality!r}: give a whole number from 1 to 100")
    return quality


def _upscale_tensor(image: Tensor, request: Request, upscaler: Upscaler, progress: Progress | None) -> Tensor:
    """(3, h, w) or (B, 3, h, w) → the same kind at the requested size."""
    pictures = image.detach().cpu().reshape(-1, *image.shape[-3:]).permute(0, 2, 3, 1)
    if image.dtype == torch.bfloat16:  # which numpy does not know
        pictures = pictures.float()
    target = request.target((image.shape[-1], image.shape[-2]))
    large = [
        enlarge(one, None, target, upscaler, one.dtype, part_of(progress, number, len(pictures)))[0]
        for number, one in enumerate(pictures.numpy())
    ]
    return (
        torch.from_numpy(np.stack(large)).permute(0, 3, 1, 2).reshape(*image.shape[:-2], *target.size[::-1]).to(image)
    )


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
