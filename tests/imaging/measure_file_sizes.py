"""Print what files of photographs and of their enlargements take of the bytes of their samples.

    python tests/imaging/measure_file_sizes.py PICTURE ...

A part of 160×160 pixels from the middle of each is taken. The numbers in `srno.imaging.file_sizes` come from it.
"""

import io
import sys
from collections import defaultdict
from pathlib import Path

from PIL import Image

from srno.imaging.formats import Format
from srno.imaging.picture import Picture
from srno.imaging.read import read
from srno.imaging.write import write
from srno.upscaling.enlarge import enlarge_picture
from srno.upscaling.sizes import make_request
from srno.upscaling.upscaler import Upscaler

SIDE = 160
WRITTEN: list[tuple[Format, int | None]] = [
    ("PNG", None), ("TIFF", None), ("JPEG", None), ("JPEG", 75), ("WEBP", None), ("AVIF", None), ("JXL", None),
    ("JP2", None), ("GIF", None),
]  # fmt: skip
SOURCES = {"PNG": {}, "GIF": {}, "JPEG": {"quality": 75}, "WEBP": {"quality": 80}}


def middle(path: Path) -> Image.Image:
    image = Image.open(path).convert("RGB")
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    return image.crop((left, top, left + SIDE, top + SIDE))


def encoded(image: Image.Image, name: str, **options: int) -> bytes:
    stream = io.BytesIO()
    image.save(stream, name, **options)
    return stream.getvalue()


def share(picture: Picture, kind: Format, quality: int | None) -> float:
    stream = io.BytesIO()
    write(picture, stream, format=kind, quality=quality)
    return stream.tell() / picture.samples().nbytes


def main(paths: list[str]) -> None:
    shares: dict[str, list[float]] = defaultdict(list)
    upscaler = Upscaler(integral=4096)
    for path in map(Path, paths):
        image = middle(path)
        for name, options in SOURCES.items():
            shares[f"source {name} {options or ''}"].append(len(encoded(image, name, **options)) / (3 * SIDE**2))
        source = read(encoded(image, "PNG"))
        for scale in (2, 4):
            for bits in (8, 16):
                large = enlarge_picture(source, make_request(scale).target(source.size), upscaler, bits, None)
                for kind, quality in WRITTEN if bits == 8 else WRITTEN[:2]:
                    name = f"×{scale}, {bits} bits, {kind} {quality or ''}"
                    shares[name].append(share(large, kind, quality))
    for name, values in shares.items():
        sys.stdout.write(f"{name:24} {min(values):.3f} {sum(values) / len(values):.3f} {max(values):.3f}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
