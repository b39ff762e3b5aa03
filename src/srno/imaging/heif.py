"""HEIF with HEVC, the pictures of phones: pillow-heif decodes 8 to 12 bits; libvips has no decoder for them."""

from typing import Any

import numpy as np
import pyvips

from srno.imaging.alpha import unpremultiply
from srno.imaging.formats import check_claimed_size, codec
from srno.imaging.icc import collapse_gray, match_profile
from srno.imaging.metadata import Blocks, described
from srno.imaging.picture import Picture, Samples, scale_to_16_bits

_P3_PRIMARIES = 12
_HDR_CURVES = {16: "PQ", 18: "HLG"}
"""Codes of colour primaries and brightness curves in H.273."""


def decode_heif(data: bytes, max_pixels: int) -> Picture:
    """Decode the primary picture; one whose header claims more than `max_pixels` is refused before.

    The file states the rotation outside EXIF, and the decoder applies it.
    """
    heif = codec("HEIF")
    try:
        file = heif.open_heif(data, convert_hdr_to_8bit=False, hdr_to_16bit=False)
        image = file[file.primary_index]
        check_claimed_size(image.size[0], image.size[1], max_pixels)
        samples: Samples = np.asarray(image)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return _picture(image, samples)


def _picture(image: Any, samples: Samples) -> Picture:
    bits = int(image.info["bit_depth"])
    samples = samples.reshape(*samples.shape[:2], -1)
    if bits > 8:
        samples = scale_to_16_bits(samples.astype(np.uint16), bits)
    colours = 1 if samples.shape[2] < 3 else 3
    colour, alpha = samples[..., :colours], samples[..., colours] if samples.shape[2] > colours else None
    if alpha is not None and image.premultiplied_alpha:
        colour = unpremultiply(colour, alpha)
    curve = _HDR_CURVES.get(_code(image, "transfer_characteristics"))
    notes = () if curve is None else (f"HDR brightness ({curve}) is taken as that of sRGB",)
    icc = image.info.get("icc_profile") or (_p3() if _code(image, "color_primaries") == _P3_PRIMARIES else None)
    colour, icc = match_profile(collapse_gray(colour, icc), icc)
    picture = Picture(colour=colour, alpha=alpha, icc=icc, format="HEIF", notes=notes)
    return described(picture, Blocks(exif=image.info.get("exif"), xmp=image.info.get("xmp")))


def _code(image: Any, name: str) -> int:
    return int(image.info.get("nclx_profile", {}).get(name, 0))


def _p3() -> bytes:
    return pyvips.Image.profile_load("p3")
