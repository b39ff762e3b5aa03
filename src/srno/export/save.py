"""Write a model as ONNX files, all of them or none."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from srno.checkpoints.native import Card
from srno.errors import SRNOError
from srno.export.export import Exporter, Precision
from srno.files import replacing
from srno.operator.model import Model

if TYPE_CHECKING:
    import onnx


def save_onnx(
    model: Model,
    path: str | Path,
    *,
    card: Card | None = None,
    parts: bool = False,
    points: int | Literal["auto"] | None = None,
    precision: Precision = "fp32",
    overwrite: bool = False,
) -> list[Path]:
    """Write a model as one ONNX graph, or as several with `parts`, and return the paths.

    `points` is the number of output pixels that the kernel integral is estimated from, `auto` as in the engine; None
    for all of them. The graphs hold the card in their metadata.

    >>> import srno, tempfile, pathlib
    >>> from srno.export.save import save_onnx
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "light.onnx"
    >>> [path.name for path in save_onnx(srno.load("default"), path, parts=True)]
    ['light.encoder.onnx', 'light.integral.onnx', 'light.render.onnx']
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise SRNOError(f"{path}: the target must end in .onnx")
    exporter = Exporter(model=model, card=card or Card(name=path.stem), points=points, precision=precision)
    names = exporter.part_names() if parts else ()
    targets = [path.with_suffix(f".{name}.onnx") for name in names] or [path]
    for target in targets:
        if target.exists() and not overwrite:
            raise SRNOError(f"{target} exists; use --overwrite to replace it")
    graphs = list(exporter.parts().values()) if parts else [exporter.whole()]
    _write(dict(zip(targets, graphs, strict=True)))
    return targets


def _write(graphs: "dict[Path, onnx.ModelProto]") -> None:
    """Write all graphs to temporary files before any of them is renamed to its path."""
    try:
        with ExitStack() as stack:
            for path, graph in graphs.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(replacing(path, sync=True)).write(graph.SerializeToString(deterministic=True))
    except OSError as error:
        names = ", ".join(str(path) for path in graphs)
        raise SRNOError(f"{names}: cannot be written ({error.strerror})") from None
