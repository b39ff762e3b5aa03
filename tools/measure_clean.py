"""Measure how strongly `--clean auto` should clean, and write the table into the package.

    python tools/measure_clean.py --data TRAINING --pictures 12

Each picture is reduced, saved with a codec at several qualities, and enlarged with weights between `light` and its
partner for compressed pictures. The table holds, for each level of compression, the mean PSNR at each strength and the
strength to use: the smallest one within TOLERANCE of the best. JPEG is measured at ×2 and ×4 and sorted by quality, the
others at ×2 and sorted by bits per pixel, in groups of equal size.
"""

import argparse
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pillow_heif
from numpy.typing import NDArray
from PIL import Image

from srno.evaluation.metrics import psnr
from srno.imaging.formats import sniff
from srno.imaging.head import compression_of
from srno.imaging.picture import to_float
from srno.imaging.read import read
from srno.imaging.resize import pillow_bicubic
from srno.upscaling.upscaler import Upscaler

TABLE = Path(__file__).parents[1] / "src" / "srno" / "weights" / "clean.json"
STRENGTHS = [round(number / 8, 3) for number in range(9)]
TOLERANCE = 0.005
"""In dB. Cleaning less keeps more of the texture, so it is preferred where PSNR does not decide."""
SIDE = 256
"""Side of the part of each picture that is scored."""
JPEG_QUALITIES = (20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 93, 95, 97, 98, 99)
QUALITIES = {
    "WEBP": (10, 30, 50, 65, 75, 85, 92, 97),
    "AVIF": (20, 35, 50, 60, 70, 80, 90),
    "HEIF": (20, 35, 50, 60, 70, 80, 90),
}
GROUPS = 7
"""Groups of bits per pixel, for codecs whose files do not state a quality."""
Curve = NDArray[np.float64]
"""PSNR at each of STRENGTHS."""


def encode(pixels: NDArray[np.uint8], codec: str, quality: int) -> bytes:
    """Save as a file; JPEG with 4:2:0 as phones do."""
    stream = io.BytesIO()
    options: dict[str, Any] = {"subsampling": "4:2:0"} if codec == "JPEG" else {}
    Image.fromarray(pixels).save(stream, codec, quality=quality, **options)
    return stream.getvalue()


def curve(hr: NDArray[np.uint8], data: bytes, scale: int, models: list[Upscaler]) -> Curve:
    """PSNR of the centre of a picture that is enlarged from a file, at each strength."""
    lr = to_float(read(data).colour)
    lr = np.broadcast_to(lr, (*lr.shape[:2], 3))
    side = SIDE // scale
    top, left = ((n - side) // 2 for n in lr.shape[:2])
    small = np.ascontiguousarray(lr[top : top + side, left : left + side])
    truth = hr[top * scale : top * scale + SIDE, left * scale : left * scale + SIDE].astype(np.float32) / 255
    results = [
        model.array(small, size=(SIDE, SIDE), scale=(scale, scale), cell_clip=True).clip(0, 1) for model in models
    ]
    return np.array([psnr(result, truth, "y", (scale, scale)) for result in results])


def choose(curves: Iterable[Curve]) -> tuple[list[float], list[float]]:
    """The strength for each curve, never rising with the level, and the PSNR gained by it against strength 0."""
    strengths: list[float] = []
    gains: list[float] = []
    for each in curves:
        first = int(np.argmax(each >= each.max() - TOLERANCE))
        strengths.append(min(STRENGTHS[first], *strengths) if strengths else STRENGTHS[first])
        gains.append(round(float(each[STRENGTHS.index(strengths[-1])] - each[0]), 3))
    return strengths, gains


def measure_jpeg(pictures: list[NDArray[np.uint8]], models: list[Upscaler]) -> dict[str, Any]:
    curves: list[Curve] = []
    for quality in JPEG_QUALITIES:
        found = [
            curve(hr, encode(reduce(hr, scale), "JPEG", quality), scale, models) for hr in pictures for scale in (2, 4)
        ]
        curves.append(np.mean(found, axis=0))
        print("JPEG", quality, curves[-1].round(3), flush=True)
    return entry([float(quality) for quality in JPEG_QUALITIES], curves)


def measure_by_bits(codec: str, pictures: list[NDArray[np.uint8]], models: list[Upscaler]) -> dict[str, Any]:
    found: list[tuple[float, Curve]] = []
    for hr in pictures:
        for quality in QUALITIES[codec]:
            small = reduce(hr, 2)
            data = encode(small, codec, quality)
            compression = compression_of(data, sniff(data), (small.shape[1], small.shape[0]))
            assert compression is not None
            found.append((compression.level, curve(hr, data, 2, models)))
    found.sort(key=lambda pair: pair[0])
    groups = [found[at[0] : at[-1] + 1] for at in np.array_split(np.arange(len(found)), GROUPS)]
    curves = [np.mean([each for _, each in group], axis=0) for group in groups]
    levels = [round(float(np.mean([level for level, _ in group])), 2) for group in groups]
    for level, each in zip(levels, curves, strict=True):
        print(codec, level, each.round(3), flush=True)
    return entry(levels, curves)


def reduce(hr: NDArray[np.uint8], scale: int) -> NDArray[np.uint8]:
    return pillow_bicubic(hr, (hr.shape[0] // scale, hr.shape[1] // scale))


def entry(levels: list[float], curves: list[Curve]) -> dict[str, Any]:
    strengths, gains = choose(curves)
    return {
        "levels": levels,
        "strengths": strengths,
        "gain_db": gains,
        "psnr": [each.round(3).tolist() for each in curves],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of training pictures")
    parser.add_argument("--pictures", type=int, default=12)
    arguments = parser.parse_args()
    pillow_heif.register_heif_opener()
    files = sorted(path for path in arguments.data.iterdir() if path.is_file())
    large = [path for path in files if min(Image.open(path).size) >= 512]
    chosen = [large[at] for at in np.linspace(0, len(large) - 1, arguments.pictures).round().astype(int)]
    pictures = [np.asarray(Image.open(path).convert("RGB"))[:512, :512] for path in chosen]
    models = [Upscaler(clean=strength) for strength in STRENGTHS]
    codecs = {"jpeg": measure_jpeg(pictures, models)}
    codecs |= {codec.lower(): measure_by_bits(codec, pictures, models) for codec in QUALITIES}
    about = f"tools/measure_clean.py, {len(pictures)} training pictures, {SIDE}² pixels each, PSNR on Y in dB"
    TABLE.write_text(json.dumps({"measured": about, "strengths": STRENGTHS, "codecs": codecs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
