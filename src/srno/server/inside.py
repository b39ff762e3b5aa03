"""Inside the operator: features, columns of K and V and channels of z over a window, and the matrix M of each layer."""

import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from srno.analysis import BasisMaps, Matrix, choose_by_energy, summarise_points, window_maps
from srno.errors import SRNOError
from srno.field.blocks import BlockField
from srno.field.field import Field, Region
from srno.operator.sampling import Sampling, whole_picture, window
from srno.progress import Progress

Kind: TypeAlias = Literal["features", "z", "k", "v", "m"]
Maps: TypeAlias = NDArray[np.float32]

MAP_SIDE = 144
"""Pixels of the longer side of a map."""
CHANNELS = 4
"""Channels of each matrix, as many as in the paper's supplement."""
CHOICE_SCALE = 2
"""Scale at which the channels are chosen, so that they stay the same while one zooms."""
SHOWN_SHARE = (1.0, 99.0)
"""Percentiles of a map that are drawn black and white."""
NEGATIVE, ZERO, POSITIVE = (46, 110, 214), (248, 248, 246), (206, 62, 46)
"""Colours of M."""


@dataclass(frozen=True)
class Channels:
    """The channels that are shown of the features and of each matrix: those that vary most over the picture."""

    features: tuple[int, ...]
    matrices: dict[Matrix, tuple[int, ...]]


@dataclass(frozen=True)
class Group:
    """Maps of one kind, or the matrix M of a layer."""

    kind: Kind
    layer: int
    """Of z the number of layers before it, of K, V and M the layer from 1."""
    maps: Maps
    """(channels, h, w), or M as (heads, width, width)"""
    channels: tuple[int, ...] = ()


def choose_channels(field: BlockField) -> Channels:
    """The channels with the largest energy over the whole picture, as in `srno reproduce fig-basis`."""
    layers = field.model.kernel_layers()
    if not layers:
        raise SRNOError(f"{type(field.model).__name__} has no Galerkin layers: there is nothing to show inside")
    size = field.size[0] * CHOICE_SCALE, field.size[1] * CHOICE_SCALE
    summary = summarise_points(layers, field.latent(size), field.integrate(size, 1))
    variance = field.some_features().float().var(0)
    return Channels(tuple(variance.argsort(descending=True)[:CHANNELS].tolist()), choose_by_energy(summary, CHANNELS))


def look_inside(
    field: BlockField, level: tuple[int, int], region: Region, version: int, channels: Channels, progress: Progress
) -> list[Group]:
    """Evaluate the maps of a region as the level (height, width) has them, in the order of the computation."""
    known = field.integrate(level, version)
    progress(0.3)
    part, local = field.part(region, progress)
    sampling = _sampling(field, part, local, level)
    found = window_maps(part, sampling, known, {name: channels.matrices[name] for name in ("z", "k", "v")})
    groups = [
        Group("features", 0, _features(part, sampling, channels.features), channels.features),
        _group(found, "z", 0),
    ]
    for t, layer in enumerate(known):
        groups += [_group(found, "k", t), _group(found, "v", t)]
        groups.append(Group("m", t + 1, layer.M.float().cpu().numpy()))
        groups.append(_group(found, "z", t + 1))
    return groups


def describe(groups: Sequence[Group]) -> dict[str, Any]:
    """The groups as JSON: a sheet of all maps, one row each, and the pictures of M, as PNG in base64."""
    maps = [group for group in groups if group.kind != "m"]
    ranges = {id(group): _ranges(group, maps) for group in maps}
    rows = [np.concatenate(_gray(group.maps, ranges[id(group)]), axis=1) for group in maps]
    height, width = maps[0].maps.shape[1:]
    return {
        "width": width,
        "height": height,
        "sheet": _png(np.concatenate(rows)),
        "groups": [_describe(group, ranges.get(id(group))) for group in groups],
    }


def _describe(group: Group, ranges: list[tuple[float, float]] | None) -> dict[str, Any]:
    head = {"kind": group.kind, "layer": group.layer}
    if ranges is None:
        heads, width, _ = group.maps.shape
        largest = float(np.abs(group.maps).max())
        return head | {"heads": heads, "width": width, "largest": largest, "picture": _png(_diverging(group.maps))}
    return head | {"channels": group.channels, "ranges": ranges}


def _sampling(field: BlockField, part: Field, local: Region, level: tuple[int, int]) -> Sampling:
    """A coarse grid over a region whose cell is that of the level: each map is a sample of what the level has."""
    top, left, bottom, right = local
    shrink = MAP_SIDE / max(bottom - top, right - left)
    size = max(1, round((bottom - top) * shrink)), max(1, round((right - left) * shrink))
    y, x = whole_picture(field.size, level).cell(clip=True, device=torch.device("cpu"))[0].tolist()
    return replace(window(part.size, size, local), cell_override=(y, x))


def _features(part: Field, sampling: Sampling, channels: Sequence[int]) -> Maps:
    """Features of the picture's pixel under each point: they have no values in between."""
    places = [
        ((sampling.axis(axis, part.features.device) + 1) / 2 * n).long().clamp(0, n - 1)
        for axis, n in enumerate(part.size)
    ]
    chosen = part.features[places[0][:, None], places[1]][..., list(channels)]
    return chosen.permute(2, 0, 1).float().cpu().numpy()


def _group(found: BasisMaps, name: Literal["z", "k", "v"], t: int) -> Group:
    return Group(name, t if name == "z" else t + 1, found.maps[name][t], found.channels[name])


def _ranges(group: Group, groups: Sequence[Group]) -> list[tuple[float, float]]:
    """Values that are drawn black and white; a channel of z has the same before and after every layer."""
    same = [other for other in groups if other.kind == "z"] if group.kind == "z" else [group]
    ranges: list[tuple[float, float]] = []
    for i in range(len(group.maps)):
        low, high = np.percentile(np.stack([other.maps[i] for other in same]), SHOWN_SHARE)
        ranges.append((float(low), float(high)))
    return ranges


def _gray(maps: Maps, ranges: Sequence[tuple[float, float]]) -> list[NDArray[np.uint8]]:
    return [
        np.rint(np.clip((values - low) / max(high - low, 1e-12), 0, 1) * 255).astype(np.uint8)
        for values, (low, high) in zip(maps, ranges, strict=True)
    ]


def _diverging(M: Maps) -> NDArray[np.uint8]:
    """M (heads, width, width) as RGB, the heads side by side; each head's matrix has K's columns as its rows."""
    share = M / max(float(np.abs(M).max()), 1e-12)
    zero, ends = np.array(ZERO), {True: np.array(POSITIVE), False: np.array(NEGATIVE)}
    shade = np.abs(share)[..., None] ** 0.5  # most entries are small
    colour = np.where(share[..., None] > 0, zero + (ends[True] - zero) * shade, zero + (ends[False] - zero) * shade)
    return np.concatenate(list(np.rint(colour).astype(np.uint8)), axis=1)


def _png(pixels: NDArray[np.uint8]) -> str:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=1)
    return b64encode(stream.getvalue()).decode()
