"""Convert Pillow images to pictures and back."""

import numpy as np
from PIL import Image

from srno.errors import SRNOError
from srno.imaging import exif
from srno.imaging.formats import CAPABILITIES, Format
from srno.imaging.icc import cmyk_to_srgb, collapse_gray, match_profile, srgb
from srno.imaging.picture import Picture, Samples, plausible_dpi


def from_pillow(image: Image.Image) -> Picture:
    """Convert the first frame of an image of any mode with 8 or 16 bits per channel; ignore its orientation tag."""
    colour, alpha = _arrays(image)
    icc = image.info.get("icc_profile")
    if image.mode == "CMYK":
        colour, icc = cmyk_to_srgb(colour, icc), srgb()
    elif image.mode in ("P", "PA"):
        colour = collapse_gray(colour, icc)
    colour, icc = match_profile(colour, icc)
    names: dict[str | None, Format] = {name: name for name in CAPABILITIES}
    return Picture(
        colour=colour,
        alpha=alpha,
        icc=icc,
        exif=exif.from_block(image.info.get("exif")).block,
        dpi=plausible_dpi(image.info.get("dpi")),
        format=names.get(image.format, "PNG"),
    )


def to_pillow(picture: Picture) -> Image.Image:
    """Convert to L, LA, RGB or RGBA of 8 bits (Pillow has no 16-bit colour); profile, EXIF and resolution in `info`."""
    samples = picture.with_bits(8).samples()
    image = Image.fromarray(samples[..., 0] if samples.shape[2] == 1 else samples)
    known = {"icc_profile": picture.icc, "exif": picture.exif, "dpi": picture.dpi}
    image.info.update({key: value for key, value in known.items() if value is not None})
    return image


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
