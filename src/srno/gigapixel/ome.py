"""What the formats of the Open Microscopy Environment say of a picture: its pixel size, and OME-TIFF's description."""

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from srno.imaging.picture import Picture

MICROMETRES_PER_INCH = 25_400
_NAMESPACE = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
_XML = """<?xml version="1.0" encoding="UTF-8"?>
<OME xmlns="{namespace}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="{namespace} {namespace}/ome.xsd">
<Image ID="Image:0" Name={name}>{description}
<Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="uint{bits}" SizeX="{width}" SizeY="{height}" SizeC="{channels}" \
SizeZ="1" SizeT="1" BigEndian="false" Interleaved="true"{step}>
<Channel ID="Channel:0:0" SamplesPerPixel="{channels}"/>
<TiffData IFD="0" PlaneCount="1"/>
</Pixels>
</Image>
</OME>"""


def is_ome_tiff(path: Path | None) -> bool:
    """Whether a name asks for OME-TIFF."""
    return path is not None and path.name.lower().endswith((".ome.tif", ".ome.tiff"))


def micrometres(like: Picture) -> tuple[float, float] | None:
    """Height and width of a pixel; None if the resolution is not known."""
    return None if like.dpi is None else (MICROMETRES_PER_INCH / like.dpi[1], MICROMETRES_PER_INCH / like.dpi[0])


def ome_xml(name: str, size: tuple[int, int], like: Picture, description: str) -> str:
    """OME-TIFF's description of one plane of (height, width)."""
    step = micrometres(like)
    printable = "".join(c for c in description if c.isprintable() or c in "\n\t")  # XML holds no other characters
    sizes = "" if step is None else f' PhysicalSizeX="{step[1]:.6g}" PhysicalSizeY="{step[0]:.6g}"'
    return _XML.format(
        namespace=_NAMESPACE,
        name=quoteattr(name.partition(".")[0]),
        description=f"<Description>{escape(printable)}</Description>" if printable else "",
        bits=like.bits,
        width=size[1],
        height=size[0],
        channels=like.channels,
        step=sizes,
    )
