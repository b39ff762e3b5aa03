"""Pictures in Zarr arrays: a plain array, or the full resolution of an OME-Zarr group. Needs the package zarr."""

import base64
from pathlib import Path
from typing import Any

import numpy as np

from srno.errors import SRNOError, require
from srno.imaging.picture import Samples, plausible_dpi

_MICROMETRES_PER_INCH = 25_400


class ZarrPicture:
    """An open array; windows are (rows, columns, channels)."""

    def __init__(self, path: Path) -> None:
        opened: Any = require("zarr", "cluster").open(str(path), mode="r")
        self.attributes = dict(opened.attrs)
        self.scales = self._scales()
        self.array = opened[self.scales["path"]] if hasattr(opened, "group_keys") else opened
        self.axes = self.scales["axes"] or self._usual_axes()
        self._check()

    def _scales(self) -> dict[str, Any]:
        """Path, axes and pixel size of the full resolution."""
        ome = self.attributes.get("ome", self.attributes)
        found = (ome.get("multiscales") or [{}])[0]
        described: list[Any] = found.get("axes", [])
        axes = [axis["name"] if isinstance(axis, dict) else axis for axis in described]
        dataset: dict[str, Any] = (found.get("datasets") or [{"path": "0"}])[0]
        steps = dataset.get("coordinateTransformations") or [{}]
        units = {axis["unit"] for axis in described if isinstance(axis, dict) and "unit" in axis}
        return {"path": dataset["path"], "axes": axes, "scale": steps[0].get("scale"), "units": units}

    def _usual_axes(self) -> list[str]:
        """The axes of an array that does not name them: channels first if there are at most four, else last."""
        first = self.array.ndim != 3 or self.array.shape[0] <= 4
        return ["c", "y", "x"][-self.array.ndim :] if first else ["y", "x", "c"]

    def _check(self) -> None:
        if self.array.dtype not in (np.uint8, np.uint16):
            raise SRNOError(f"samples of type {self.array.dtype} are not supported; convert to 8 or 16 bits")
        if "y" not in self.axes or "x" not in self.axes or not 1 <= self.shape[2] <= 4:
            raise SRNOError(f"an array of axes {self.axes} and shape {self.array.shape} is not a picture")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels."""
        of = dict(zip(self.axes, self.array.shape, strict=True))
        return of["y"], of["x"], of.get("c", 1)

    @property
    def dtype(self) -> Any:
        """uint8 or uint16."""
        return self.array.dtype

    @property
    def icc(self) -> bytes | None:
        """The profile that srno has stored."""
        text = self.attributes.get("icc_profile")
        return base64.b64decode(text) if isinstance(text, str) else None

    @property
    def dpi(self) -> tuple[float, float] | None:
        """Horizontal and vertical resolution, if the scale is one of length."""
        scale = self.scales["scale"]
        if scale is None or self.scales["units"] != {"micrometer"}:
            return None
        of = dict(zip(self.axes, scale, strict=True))
        return plausible_dpi((_MICROMETRES_PER_INCH / of["x"], _MICROMETRES_PER_INCH / of["y"]))

    def read(self, rows: slice, columns: slice) -> Samples:
        """A window; of further axes, such as time and depth, the first."""
        index = tuple({"y": rows, "x": columns, "c": slice(None)}.get(axis, 0) for axis in self.axes)
        window = np.asarray(self.array[index])
        kept = [axis for axis in self.axes if axis in "cyx"]
        if "c" not in kept:
            return window.reshape(*window.shape, 1) if kept == ["y", "x"] else window.T[..., None]
        return np.ascontiguousarray(window.transpose([kept.index(axis) for axis in "yxc"]))
