"""Reference of the rivals, directly from their equations: float64, one query, neighbour and filter at a time.

It shares no arithmetic with the package. Tensors come as a plain mapping from the package's names to arrays.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Tensors = Mapping[str, Array]
NEIGHBOURS = ((-1, -1), (-1, 1), (1, -1), (1, 1))
BORDER_SHIFT = 1e-6


def liif(tensors: Tensors, image: Array, coords: Array, cell: Array) -> Array:
    """image (3, h, w), coords (n, 2) as (y, x), cell (2,) in half LR pixels → RGB (n, 3)."""
    features = encode(tensors, image)

    def at_neighbour(pixel: tuple[int, int], delta: Array) -> Array:
        return perceptron(tensors, [*surroundings(features, pixel).flatten(), *delta, *cell])

    return np.array([ensemble(features.shape[1:], x, at_neighbour) for x in coords])


def lte(tensors: Tensors, image: Array, coords: Array, cell: Array) -> Array:
    features = encode(tensors, image)
    coefficient, frequency = convolve(tensors, "coefficient", features), convolve(tensors, "frequency", features)
    waves = len(coefficient) // 2

    def at_neighbour(pixel: tuple[int, int], delta: Array) -> Array:
        values = np.zeros(2 * waves)
        for j in range(waves):
            F_j = frequency[j][pixel], frequency[waves + j][pixel]
            f = F_j[0] * delta[0] + F_j[1] * delta[1] + tensors["phase.weight"][j] @ cell
            values[j] = coefficient[j][pixel] * np.cos(np.pi * f)
            values[waves + j] = coefficient[waves + j][pixel] * np.sin(np.pi * f)
        return perceptron(tensors, values)

    return np.array([ensemble(features.shape[1:], x, at_neighbour) + bilinear(image, x) for x in coords])


def metasr(tensors: Tensors, image: Array, coords: Array, cell: Array, *, filter_cell: Array | None = None) -> Array:
    """`filter_cell` is the cell of the filters, if it differs from the cell that moves the query."""
    features = encode(tensors, image)
    size = np.array(features.shape[1:])
    answers: list[Array] = []
    for x in coords:
        q = x - cell / size / 2
        pixel = nearest(np.clip(q + BORDER_SHIFT, -1 + BORDER_SHIFT, 1 - BORDER_SHIFT), features.shape[1:])
        corner = np.array([centre(i, n) - 1 / n for i, n in zip(pixel, size, strict=True)])
        offset = (q - corner) * size / 2
        inverse_scale = (cell if filter_cell is None else filter_cell)[0] / 2
        filters = perceptron(tensors, [*offset, inverse_scale]).reshape(-1, 3)
        answers.append(surroundings(features, pixel).flatten() @ filters)
    return np.array(answers)


def mlp(tensors: Tensors, image: Array, coords: Array, cell: Array) -> Array:
    features = encode(tensors, image)
    size = np.array(features.shape[1:])
    answers: list[Array] = []
    for x in coords:
        pixel = nearest(x + BORDER_SHIFT, features.shape[1:])
        delta = (x - [centre(i, n) for i, n in zip(pixel, size, strict=True)]) * size
        angles = [2**k * np.pi * delta[axis] for k in range(5) for axis in (0, 1)]
        parts = [*features[:, pixel[0], pixel[1]], *np.sin(angles), *np.cos(angles), *cell]
        hidden = np.maximum(tensors["lifting.linear.weight"] @ parts + tensors["lifting.linear.bias"], 0)
        answers.append(perceptron(tensors, hidden) + bilinear(image, x))
    return np.array(answers)


def fixed(tensors: Tensors, image: Array, coords: Array, cell: Array, *, scale: int) -> Array:
    x = encode(tensors, image - tensors["encoder.mean"][:, None, None] if "encoder.mean" in tensors else image)
    factors = (2, 2) if scale == 4 else (scale,)
    for step, factor in enumerate(factors):
        x = shuffle(convolve(tensors, f"tail.{2 * step}", x), factor)
    picture = convolve(tensors, f"tail.{2 * len(factors)}", x)
    return np.array([bilinear(picture, x) for x in coords])


# Parts


def ensemble(size: tuple[int, ...], x: Array, at_neighbour) -> Array:
    """Values of the four neighbours, each weighted by the area between the query and the opposite one."""
    pixels, deltas = [], []
    for signs in NEIGHBOURS:
        moved = [x[axis] + signs[axis] / size[axis] + BORDER_SHIFT for axis in (0, 1)]
        pixels.append(nearest(np.clip(moved, -1 + BORDER_SHIFT, 1 - BORDER_SHIFT), size))
        deltas.append(np.array([(x[axis] - centre(pixels[-1][axis], size[axis])) * size[axis] for axis in (0, 1)]))
    total = np.zeros(3)
    for corner, signs in enumerate(NEIGHBOURS):
        share = 1.0
        for axis in (0, 1):
            other = NEIGHBOURS.index(tuple(-sign if a == axis else sign for a, sign in enumerate(signs)))
            own, opposite = abs(deltas[corner][axis]), abs(deltas[other][axis])
            share *= opposite / (own + opposite) if own + opposite > 0 else 0.5
        total += share * at_neighbour(pixels[corner], deltas[corner])
    return total


def centre(index: int, n: int) -> float:
    return -1 + (2 * index + 1) / n


def nearest(x, size: tuple[int, ...]) -> tuple[int, int]:
    """The pixel with the nearest centre, axis by axis."""
    rows, columns = (np.argmin([abs(a - centre(i, n)) for i in range(n)]) for a, n in zip(x, size, strict=True))
    return int(rows), int(columns)


def surroundings(features: Array, pixel: tuple[int, int]) -> Array:
    """(C, 3, 3) around a pixel, zero outside the picture."""
    padded = np.pad(features, ((0, 0), (1, 1), (1, 1)))
    return padded[:, pixel[0] : pixel[0] + 3, pixel[1] : pixel[1] + 3]


def perceptron(tensors: Tensors, x) -> Array:
    depth = count(tensors, "perceptron.layers.{}")
    for i in range(depth):
        x = tensors[f"perceptron.layers.{i}.weight"] @ np.asarray(x) + tensors[f"perceptron.layers.{i}.bias"]
        x = np.maximum(x, 0) if i < depth - 1 else x
    return x


def bilinear(image: Array, x: Array) -> Array:
    """(3,) with the border pixels repeated."""
    place = [np.clip((x[axis] + 1) * n / 2 - 0.5, 0, n - 1) for axis, n in enumerate(image.shape[1:])]
    rgb = np.zeros(len(image))
    for i in range(image.shape[1]):
        for j in range(image.shape[2]):
            rgb += max(0, 1 - abs(place[0] - i)) * max(0, 1 - abs(place[1] - j)) * image[:, i, j]
    return rgb


def shuffle(maps: Array, factor: int) -> Array:
    channels, height, width = len(maps) // factor**2, *maps.shape[1:]
    out = np.zeros((channels, height * factor, width * factor))
    for c, i, j in np.ndindex(channels, factor, factor):
        out[c, i::factor, j::factor] = maps[(c * factor + i) * factor + j]
    return out


# Encoders


def encode(tensors: Tensors, image: Array) -> Array:
    return rdn(tensors, image) if "encoder.shallow1.weight" in tensors else edsr(tensors, image)


def edsr(tensors: Tensors, image: Array) -> Array:
    shallow = x = convolve(tensors, "encoder.head", image)
    for i in range(count(tensors, "encoder.blocks.{}.conv1")):
        inner = np.maximum(convolve(tensors, f"encoder.blocks.{i}.conv1", x), 0)
        x = x + convolve(tensors, f"encoder.blocks.{i}.conv2", inner)
    return shallow + convolve(tensors, "encoder.tail", x)


def rdn(tensors: Tensors, image: Array) -> Array:
    shallow = convolve(tensors, "encoder.shallow1", image)
    x = convolve(tensors, "encoder.shallow2", shallow)
    outputs: list[Array] = []
    for i in range(count(tensors, "encoder.blocks.{}.fusion")):
        dense = x
        for j in range(count(tensors, f"encoder.blocks.{i}.convs.{{}}")):
            dense = np.concatenate([dense, np.maximum(convolve(tensors, f"encoder.blocks.{i}.convs.{j}", dense), 0)])
        x = x + convolve(tensors, f"encoder.blocks.{i}.fusion", dense)
        outputs.append(x)
    fused = convolve(tensors, "encoder.fusion1", np.concatenate(outputs))
    return shallow + convolve(tensors, "encoder.fusion2", fused)


def convolve(tensors: Tensors, name: str, maps: Array) -> Array:
    """Zero-padded convolution, 3×3 or 1×1, pixel by pixel."""
    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    out = np.zeros((len(weight), *maps.shape[1:]))
    for i, j in np.ndindex(*maps.shape[1:]):
        patch = surroundings(maps, (i, j)) if weight.shape[-1] == 3 else maps[:, i : i + 1, j : j + 1]
        out[:, i, j] = weight.reshape(len(weight), -1) @ patch.flatten() + bias
    return out


def count(tensors: Tensors, pattern: str) -> int:
    """Count pattern.format(0), pattern.format(1), … up to the first that is missing."""
    n = 0
    while f"{pattern.format(n)}.weight" in tensors:
        n += 1
    return n
