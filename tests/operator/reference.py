"""Reference of the operator, directly from its equations: float64, one point, neighbour, head and channel at a time.

It shares no arithmetic with the package. Tensors come as a plain mapping from the package's names to arrays.
"""

from collections.abc import Mapping
from math import cos, erf, floor, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Tensors = Mapping[str, Array]
Vector = list[float]


def evaluate(tensors: Tensors, image: Array, coords: Array, cell: Array, *, lifting: str) -> Array:
    """image (3, h, w), coords (n, 2) as (y, x), cell (2,) → RGB (n, 3)."""
    features = rdn(tensors, image) if "encoder.shallow1.weight" in tensors else edsr(tensors, image)
    lift = {"interpolation-free": lift_interpolation_free, "nearest": lift_nearest}[lifting]
    z = [linear(tensors, "lifting.linear", lift(features, point, cell)) for point in coords]
    for t in range(count(tensors, "layers.{}.W1")):
        z = galerkin_layer(tensors, f"layers.{t}", z)
    answers: list[Vector] = []
    for point, latent in zip(coords, z, strict=True):
        hidden = [gelu(a) for a in linear(tensors, "projection.hidden", latent)]
        rgb = linear(tensors, "projection.rgb", hidden)
        answers.append([rgb[c] + bilinear(image[c], point) for c in range(3)])
    return np.array(answers)


# Encoders


def edsr(tensors: Tensors, image: Array) -> Array:
    """(3, h, w) → (channels, h, w)."""
    shallow = convolve(tensors, "encoder.head", image)
    x = shallow
    for i in range(count(tensors, "encoder.blocks.{}.conv1")):
        inner = np.maximum(convolve(tensors, f"encoder.blocks.{i}.conv1", x), 0)
        x = x + convolve(tensors, f"encoder.blocks.{i}.conv2", inner)
    return shallow + convolve(tensors, "encoder.tail", x)


def rdn(tensors: Tensors, image: Array) -> Array:
    """(3, h, w) → (channels, h, w)."""
    shallow = convolve(tensors, "encoder.shallow1", image)
    x = convolve(tensors, "encoder.shallow2", shallow)
    outputs: list[Array] = []
    for i in range(count(tensors, "encoder.blocks.{}.fusion")):
        dense = x
        for j in range(count(tensors, f"encoder.blocks.{i}.convs.{{}}")):
            new = np.maximum(convolve(tensors, f"encoder.blocks.{i}.convs.{j}", dense), 0)
            dense = np.concatenate([dense, new])
        x = x + convolve(tensors, f"encoder.blocks.{i}.fusion", dense)
        outputs.append(x)
    fused = convolve(tensors, "encoder.fusion1", np.concatenate(outputs))
    return shallow + convolve(tensors, "encoder.fusion2", fused)


def convolve(tensors: Tensors, name: str, x: Array) -> Array:
    """x (i, h, w) with the kernel `name` (o, i, k, k), zeros around it → (o, h, w)."""
    kernel, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    _, height, width = x.shape
    reach = kernel.shape[-1] // 2
    out = np.zeros((kernel.shape[0], height, width))
    for o in range(kernel.shape[0]):
        for row in range(height):
            for column in range(width):
                total = float(bias[o])
                for ky in range(kernel.shape[2]):
                    for kx in range(kernel.shape[3]):
                        y, x_ = row + ky - reach, column + kx - reach
                        if 0 <= y < height and 0 <= x_ < width:
                            total += sum(
                                float(kernel[o, i, ky, kx]) * float(x[i, y, x_]) for i in range(kernel.shape[1])
                            )
                out[o, row, column] = total
    return out


# Lifting


def lift_interpolation_free(features: Array, point: Array, cell: Array) -> Vector:
    """[δ_1..δ_4, s_1·E(x̂_1)..s_4·E(x̂_4), c] at one point."""
    channels, *sizes = features.shape
    offsets: Vector = []
    weighted: Vector = []
    for signs in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        pixel: list[int] = []
        share = 1.0
        for axis in (0, 1):
            n, x, sign = sizes[axis], float(point[axis]), signs[axis]
            own, other = neighbour(x, sign, n), neighbour(x, -sign, n)
            delta, opposite = (x - centre(own, n)) * n, (x - centre(other, n)) * n
            together = abs(delta) + abs(opposite)
            share *= abs(opposite) / together if together else 0.5
            pixel.append(own)
            offsets.append(delta)
        weighted += [share * float(features[c, pixel[0], pixel[1]]) for c in range(channels)]
    return [*offsets, *weighted, *(float(c) for c in cell)]


def lift_nearest(features: Array, point: Array, cell: Array) -> Vector:
    """[E(x̂), sin(2^k π δ), cos(2^k π δ), c] at one point, x̂ the pixel nearest to it (+ 1e-6)."""
    channels, *sizes = features.shape
    row, column = (nearest(float(point[axis]) + 1e-6, sizes[axis]) for axis in (0, 1))
    delta_y = (float(point[0]) - centre(row, sizes[0])) * sizes[0]
    delta_x = (float(point[1]) - centre(column, sizes[1])) * sizes[1]
    angles = [2**k * pi * delta for k in range(5) for delta in (delta_y, delta_x)]
    embedding = [sin(angle) for angle in angles] + [cos(angle) for angle in angles]
    return [*(float(features[c, row, column]) for c in range(channels)), *embedding, *(float(c) for c in cell)]


def centre(i: int, n: int) -> float:
    return -1 + (2 * i + 1) / n


def nearest(x: float, n: int) -> int:
    """The pixel whose centre is nearest."""
    return min(range(n), key=lambda i: abs(x - centre(i, n)))


def neighbour(x: float, sign: int, n: int) -> int:
    """The pixel nearest to x ± 1/n + 1e-6, clamped to the picture."""
    moved = x + sign / n + 1e-6
    return nearest(min(max(moved, -1 + 1e-6), 1 - 1e-6), n)


# Galerkin layer, projection and skip


def galerkin_layer(tensors: Tensors, name: str, z: list[Vector]) -> list[Vector]:
    """z ← z + W₂·gelu(W₁·(q·M + z)), with M = Σ k̃ᵀṽ / n per head."""
    heads, width = tensors[f"{name}.key_norm.weight"].shape
    query = [linear(tensors, f"{name}.query", point) for point in z]
    key = [head_norm(tensors, f"{name}.key_norm", linear(tensors, f"{name}.key", point)) for point in z]
    value = [head_norm(tensors, f"{name}.value_norm", linear(tensors, f"{name}.value", point)) for point in z]
    u = [[0.0] * (heads * width) for _ in z]
    for head in range(heads):
        first = head * width
        for j in range(width):
            for i in range(width):
                M_ij = sum(k[first + i] * v[first + j] for k, v in zip(key, value, strict=True)) / len(z)
                for point in range(len(z)):
                    u[point][first + j] += query[point][first + i] * M_ij
    result: list[Vector] = []
    for latent, update in zip(z, u, strict=True):
        inner = linear(tensors, f"{name}.W1", [a + b for a, b in zip(update, latent, strict=True)])
        outer = linear(tensors, f"{name}.W2", [gelu(a) for a in inner])
        result.append([a + b for a, b in zip(latent, outer, strict=True)])
    return result


def head_norm(tensors: Tensors, name: str, a: Vector) -> Vector:
    """(a - mean)/(std + 1e-5)·γ + β over each head's channels, std unbiased."""
    gamma, beta = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    heads, width = gamma.shape
    result: Vector = []
    for head in range(heads):
        own = a[head * width : (head + 1) * width]
        mean = sum(own) / width
        std = sqrt(sum((value - mean) ** 2 for value in own) / (width - 1))
        for channel, value in enumerate(own):
            result.append((value - mean) / (std + 1e-5) * float(gamma[head, channel]) + float(beta[head, channel]))
    return result


def linear(tensors: Tensors, name: str, x: Vector) -> Vector:
    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    assert weight.shape[1] == len(x)
    return [
        float(b) + sum(float(w) * a for w, a in zip(row, x, strict=True)) for row, b in zip(weight, bias, strict=True)
    ]


def gelu(a: float) -> float:
    return a * (1 + erf(a / sqrt(2))) / 2


def bilinear(channel: Array, point: Array) -> float:
    """One channel (h, w) between the four pixels around `point`, with the border pixels repeated."""
    lower: list[int] = []
    fraction: list[float] = []
    for axis in (0, 1):
        n = channel.shape[axis]
        position = min(max(((float(point[axis]) + 1) * n - 1) / 2, 0.0), n - 1.0)
        lower.append(min(floor(position), max(n - 2, 0)))
        fraction.append(position - lower[axis])
    total = 0.0
    for i in (0, 1):
        for j in (0, 1):
            weight = (fraction[0] if i else 1 - fraction[0]) * (fraction[1] if j else 1 - fraction[1])
            row, column = min(lower[0] + i, channel.shape[0] - 1), min(lower[1] + j, channel.shape[1] - 1)
            total += weight * float(channel[row, column])
    return total


def count(tensors: Tensors, pattern: str) -> int:
    """Count pattern.format(0), pattern.format(1), … up to the first without a weight."""
    i = 0
    while f"{pattern.format(i)}.weight" in tensors:
        i += 1
    return i
