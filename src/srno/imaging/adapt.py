"""A picture made to fit a format: what the format cannot hold is worked into the samples or left out, and said."""

from dataclasses import replace

from srno.imaging import profile
from srno.imaging.alpha import flatten
from srno.imaging.formats import CAPABILITIES, Capability, Format
from srno.imaging.picture import Picture


def adapt(picture: Picture, target: Format, *, metadata: bool) -> tuple[Picture, tuple[str, ...]]:
    """The picture as `target` can hold it, and one note per thing that was lost.

    Where the profile cannot stay, the colours are converted to sRGB, so that they look the same.
    """
    capability = CAPABILITIES[target]
    notes: list[str] = []
    if not metadata:
        picture = replace(picture, exif=None, dpi=None)
    if picture.icc is not None and not (metadata and _holds(capability, picture)):
        colour = profile.to_srgb(picture.colour, picture.icc)
        if colour is not picture.colour:
            notes.append("colours converted to sRGB, since the profile is left out")
        picture = replace(picture, colour=colour, icc=None)
    if picture.exif is not None and not (capability.exif and len(picture.exif) <= _exif_max(target)):
        notes.append(f"EXIF left out: {target} cannot hold {'so much' if capability.exif else 'any'}")
        picture = replace(picture, exif=None)
    if picture.alpha is not None and not capability.alpha:
        notes.append(f"laid on white: {target} cannot hold alpha")
        picture = replace(picture, colour=flatten(picture.colour, picture.alpha), alpha=None)
    if picture.bits not in capability.bits:
        notes.append(f"rounded to 8 bits per channel: {target} cannot hold {picture.bits}")
        picture = picture.with_bits(8)
    return picture, tuple(notes)


def _holds(capability: Capability, picture: Picture) -> bool:
    """Whether the picture's profile fits the samples that will be written."""
    return capability.icc and (capability.gray or picture.colour.shape[2] == 3)


def _exif_max(target: Format) -> int:
    # A JPEG segment has 65,535 bytes, less two for its length and six for the prefix.
    return 65_527 if target == "JPEG" else 2**31 - 1
