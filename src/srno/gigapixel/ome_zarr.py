"""OME-Zarr 0.5: a folder with an array for each level, of which every chunk is a file."""

import base64
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from srno.files import write_atomically
from srno.gigapixel.coding import compress_gzip, compress_zstd
from srno.gigapixel.container import Container, Stored, write_tile
from srno.gigapixel.levels import Cut
from srno.gigapixel.ome import micrometres
from srno.imaging.formats import Format
from srno.imaging.picture import Samples

_CODECS: dict[str, list[dict[str, Any]]] = {
    "deflate": [{"name": "gzip", "configuration": {"level": 6}}],
    "zstd": [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
    "none": [],
}


@dataclass(frozen=True, eq=False)
class OmeZarr(Container):
    """A multiscale group with the axes c, y, x; workers write its chunks."""

    format: ClassVar[Format] = "ZARR"

    def encode(self, samples: Samples) -> bytes:
        planes = np.ascontiguousarray(self.padded(samples).transpose(2, 0, 1))
        data = planes.astype(planes.dtype.newbyteorder("<"), copy=False).tobytes()
        if self.compression == "deflate":
            return compress_gzip(data)
        return compress_zstd(data) if self.compression == "zstd" else data

    def store(self, folder: Path, cuts: Iterable[Cut]) -> list[Stored]:
        stored: list[Stored] = []
        for cut in cuts:
            path = _part(folder) / str(cut.level) / "c" / "0" / str(cut.row) / str(cut.column)
            write_tile(path, self.encode(cut.samples))
            stored.append(Stored(cut.level, cut.row, cut.column, b""))
        return stored

    def finish(self, folder: Path, records: Iterable[bytes], output: Path) -> None:  # noqa: ARG002
        if not _part(folder).exists():  # a kill came after the last step
            return
        for level in range(self.levels.count):
            _write_json(_part(folder) / str(level) / "zarr.json", self._array(level))
        _write_json(_part(folder) / "zarr.json", self._group(output.name))
        if output.is_dir():
            shutil.rmtree(output)
        _part(folder).replace(output)

    def _array(self, level: int) -> dict[str, Any]:
        channels, tile = self.like.channels, self.levels.tile
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [channels, *self.levels.size_of(level)],
            "data_type": f"uint{self.like.bits}",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [channels, tile, tile]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, *_CODECS[self.compression]],
            "dimension_names": ["c", "y", "x"],
            "attributes": {},
        }

    def _group(self, name: str) -> dict[str, Any]:
        known = micrometres(self.like)
        step, unit = (known, {"unit": "micrometer"}) if known else ((1.0, 1.0), {})
        axes = [{"name": "c", "type": "channel"}, *({"name": a, "type": "space", **unit} for a in "yx")]
        datasets = [
            {
                "path": str(level),
                "coordinateTransformations": [{"type": "scale", "scale": [1.0, *(s * 2**level for s in step)]}],
            }
            for level in range(self.levels.count)
        ]
        scales = {"name": name.partition(".")[0], "axes": axes, "datasets": datasets, "type": "mean"}
        attributes: dict[str, Any] = {"ome": {"version": "0.5", "multiscales": [scales]}}
        if self.like.icc is not None:  # the format has no place for it
            attributes["icc_profile"] = base64.b64encode(self.like.icc).decode()
        return {"zarr_format": 3, "node_type": "group", "attributes": attributes}


def _part(folder: Path) -> Path:
    return folder / "result.zarr"


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(content, indent=2).encode())
