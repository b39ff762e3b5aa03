"""Enlarge a picture in bands of rows with the graphs of `srno export light light.onnx --parts`; no srno, no torch.

python examples/onnx_client.py light in.ppm out.ppm 3.7
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime import InferenceSession  # pyright: ignore[reportMissingTypeStubs]

STRIP_ROWS, BAND_PIXELS = 128, 1 << 16  # rows of the picture to encode at once; output pixels to compute at once


class Part(InferenceSession):
    def __call__(self, **inputs: Any) -> Any:
        return self.run(None, {each.name: inputs[each.name] for each in self.get_inputs()})

    def shape(self, name: str) -> list[int]:
        return next((each.shape for each in self.get_inputs() if each.name == name), [])


def encode(encoder: Part, image: Any) -> Any:
    radius, strips = int(encoder.get_modelmeta().custom_metadata_map["radius"]), list[Any]()
    for top in range(0, image.shape[2], STRIP_ROWS):
        above = min(top, radius)  # the features of a strip depend on so many rows beyond it
        features = encoder(image=image[:, :, top - above : top + STRIP_ROWS + radius])[0]
        strips.append(features[:, :, above : above + STRIP_ROWS])
    return np.concatenate(strips, axis=2)


def enlarge(stem: str, image: Any, size: Any) -> Iterator[Any]:
    """Yield bands (1, 3, rows, W) of an image (1, 3, h, w) in [0, 1] at size (H, W)."""
    render, rows = Part(f"{stem}.render.onnx"), max(1, BAND_PIXELS // size[1])
    tiles = [np.array([top, 0, min(top + rows, size[0]), size[1]]) for top in range(0, size[0], rows)]
    inputs: dict[str, Any] = {"image": image, "size": size}
    inputs["features"] = encode(Part(f"{stem}.encoder.onnx"), image)
    if shape := render.shape("A"):  # the T kernel layers as matrices A (T, d, d) and biases a (T, d)
        integral, A, a = Part(f"{stem}.integral.onnx"), np.zeros(shape, np.float32), np.zeros(shape[:2], np.float32)
        for t in range(shape[0] if integral.shape("sums") else 0):  # exact: one pass over the output for each layer
            sums = np.zeros(integral.shape("sums"), np.float32)
            for tile in tiles:
                sums, A[t], a[t] = integral(**inputs, tile=tile, A=A[:t], a=a[:t], sums=sums)
        inputs["A"], inputs["a"] = (A, a) if integral.shape("sums") else integral(**inputs)
    yield from (render(**inputs, tile=tile)[0] for tile in tiles)


if __name__ == "__main__":
    stem, source, target, factor = sys.argv[1:]
    ppm = Path(source).read_bytes()  # binary, without comments
    w, h = (int(word) for word in ppm.split(maxsplit=3)[1:3])
    pixels = np.frombuffer(ppm[-3 * h * w :], np.uint8).reshape(1, h, w, 3).transpose(0, 3, 1, 2)
    size = np.array([int(side * float(factor) + 0.5) for side in (h, w)])
    with Path(target).open("wb") as out:
        out.write(b"P6 %d %d 255\n" % (size[1], size[0]))
        for band in enlarge(stem, pixels / np.float32(255), size):
            out.write((band[0].transpose(1, 2, 0) * 255 + 0.5).astype(np.uint8).tobytes())
