"""How far a piece of work is, as a part of the whole."""

from srno.inference.field import Progress
from srno.inference.sizes import Size
from srno.operator.model import Model


def between(progress: Progress | None, start: float, stop: float) -> Progress | None:
    """Progress of the piece that takes the whole from `start` to `stop`."""
    return None if progress is None else lambda share: progress(start + share * (stop - start))


def part_of(progress: Progress | None, index: int, count: int) -> Progress | None:
    """Progress of the piece `index` out of `count` equal ones."""
    return between(progress, index / count, (index + 1) / count)


def lifting_share(model: Model, lr: Size, size: Size) -> float:
    """The part of lifting in the work of lifting and rendering, roughly: a parameter is a product for each pixel."""
    encoder = sum(parameter.numel() for parameter in model.encoder.parameters())
    decoder = sum(parameter.numel() for parameter in model.parameters()) - encoder
    lifting, rendering = encoder * lr[0] * lr[1], decoder * size[0] * size[1]
    return lifting / (lifting + rendering)
