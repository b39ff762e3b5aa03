"""Convert Pillow images to pictures and back, and decode the formats of 8 bits that need nothing else."""

from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from types import MappingProxyType
from typing import Any

import numpy as np
from PIL import Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.TgaImagePlugin import TgaImageFile

from srno.errors import SRNOError
from srno.imaging.formats import CAPABILITIES, Format, check_claimed_size
from srno.imaging.icc import cmyk_to_srgb, collapse_gray, match_profile, srgb
from srno.imaging.jpeg import jpeg_compression
from srno.imaging.metadata import Blocks, described
from srno.imaging.picture import Compression, Picture, Samples, plausible_dpi

FILE_CLASSES: Mapping[Format, Any] = MappingProxyType({"BMP": BmpImageFile, "GIF": GifImageFile, "TGA": TgaImageFile})


def decode_pillow(data: bytes, kind: Format, max_pixels: int) -> Picture:
    """Decode the first frame; a picture whose header claims more than `max_pixels` is refused before."""
    image: Image.Image = FILE_CLASSES[kind](BytesIO(data))
    check_claimed_size(*image.size, max_pixels)
    picture = from_pillow(image)
    # Animations declare a transparent colour for their later frames; a first frame that does not use it is opaque.
    if kind == "GIF" and picture.alpha is not None and picture.alpha.min() == 255:
        return replace(picture, alpha=None)
    return picture


def from_pillow(image: Image.Image) -> Picture:
    """Convert the first frame of an image of any mode with 8 or 16 bits per channel; ignore its orientation tag."""
    colour, alpha = _arrays(image)
    icc = image.info.get("icc_profile")
    notes = ()
    if image.mode == "CMYK":
        colour, icc, notes = cmyk_to_srgb(colour, icc), srgb(), ("CMYK converted to sRGB",)
    elif image.mode in ("P", "PA"):
        colour = collapse_gray(colour, icc)
    colour, icc = match_profile(colour, icc)
    names: dict[str | None, Format] = {name: name for name in CAPABILITIES}
    picture = Picture(
        colour=colour,
        alpha=alpha,
        icc=icc,
        dpi=plausible_dpi(image.info.get("dpi")),
        format=names.get(image.format, "PNG"),
        notes=notes,
    )
    comment = image.info.get("comment")
    blocks = Blocks(
        exif=image.info.get("exif"),
        xmp=_bytes(image.info.get("xmp")),
        comments=(comment,) if isinstance(comment, bytes) and comment else (),
    )
    return described(picture, blocks)


def to_pillow(picture: Picture) -> Image.Image:
    """Convert to L, LA, RGB or RGBA of 8 bits (Pillow has no 16-bit colour); metadata in `info`."""
    samples = picture.with_bits(8).samples()
    image = Image.fromarray(samples[..., 0] if samples.shape[2] == 1 else samples)
    known = {"icc_profile": picture.icc, "exif": picture.exif, "xmp": picture.xmp, "dpi": picture.dpi}
    image.info.update({key: value for key, value in known.items() if value is not None})
    return image


def pillow_compression(image: Image.Image) -> Compression | None:
    """The compression of an image that was opened from a JPEG file; Pillow keeps none of other formats."""
    tables: dict[int, list[int]] = getattr(image, "quantization", {})
    return jpeg_compression(tables.get(0))


def _bytes(value: object) -> bytes | None:
    """Return metadata as bytes; Pillow gives some formats' XMP as text."""
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None


def _arrays(image: Image.Image) -> tuple[Samples, Samples | None]:
    """Colour (h, w, 1|3|4 for CMYK) and alpha (h, w)."""
    if image.mode in ("I", "F"):
        raise SRNOError(f"samples of mode {image.mode} (32 bits) are not supported; convert them to 8 or 16 bits first")
    if image.mode.startswith("I;16"):
        return np.asarray(image).astype(np.uint16)[..., None], None
    if image.mode != "CMYK":
        gray = image.mode in ("1", "L", "LA", "La")
        transparent = image.has_transparency_data or image.mode in ("La", "RGBa")
        image = image.convert(("LA" if transparent else "L") if gray else ("RGBA" if transparent else "RGB"))
    samples = np.asarray(image)
    if image.mode in ("LA", "RGBA"):
        return samples[..., :-1], samples[..., -1]
    return samples.reshape(image.height, image.width, -1), None
