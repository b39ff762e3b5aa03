"""Measure the PSNR loss of shortcuts on evaluation sets: the kernel integral from N points, and products in bf16.

    python benchmarks/quadrature.py --data EVALUATION --sets Set5 Set14 B100 --scales 2,3,4
    python benchmarks/quadrature.py --data EVALUATION --model light --shortcuts fp32:8192 fp32:auto bf16:auto --emulate

A shortcut is a precision and an integral: `auto`, `exact` or a number of points. Prints a Markdown table: mean PSNR
with the exact integral in fp32, and for each shortcut the mean difference and that of the worst picture. A picture with
fewer output pixels than points has the exact integral.

`--emulate` computes what a machine with bf16 or fp16 units does on one that has none: operands are rounded, products
and their sums are in fp32, and the result is rounded. Only the order of the sums may differ from such a machine.

`--log FILE` keeps each score, and a later run computes only what the file lacks.
"""

import argparse
import copy
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from srno.checkpoints.catalogue import load
from srno.evaluation.datasets import SetPicture, find_sets, load_pair
from srno.evaluation.metrics import psnr
from srno.evaluation.protocols import PROTOCOLS, Scale, parse_scales
from srno.field.field import lift
from srno.field.quadrature import Integral
from srno.operator.model import Model

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
aten = torch.ops.aten
PRODUCTS = {each: each for each in (aten.convolution.default, aten.addmm.default, aten.mm.default, aten.bmm.default)}
PRODUCTS |= {aten.addmm.out: aten.addmm.default, aten.addmm_.default: aten.addmm.default}
"""Every product of the models, and the form of it that returns a new tensor."""


class EmulatedUnits(TorchDispatchMode):
    """Products of half-precision tensors as units for them compute them: sums in fp32, the result rounded."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func not in PRODUCTS or all(x.dtype == torch.float32 for x in args if isinstance(x, Tensor)):
            return func(*args, **kwargs)
        out = args[0] if func is aten.addmm_.default else kwargs.pop("out", None)
        wide = PRODUCTS[func](*tree_map(lambda x: x.float() if isinstance(x, Tensor) else x, args), **kwargs)
        return wide.to(args[0].dtype) if out is None else out.copy_(wide)


def parse_shortcut(text: str) -> tuple[str, Integral]:
    """`bf16:16384` → the precision and the integral."""
    precision, _, integral = text.partition(":")
    if precision not in DTYPES or not (integral in ("auto", "exact") or integral.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: write a precision and an integral, such as bf16:auto or fp32:8192")
    return precision, integral if integral == "auto" or integral == "exact" else int(integral)


def picture_scores(
    models: dict[str, Model],
    picture: SetPicture,
    scale: Scale,
    shortcuts: list[tuple[str, Integral]],
    units: AbstractContextManager[Any],
) -> list[float]:
    """PSNR of each shortcut."""
    protocol = PROTOCOLS["benchmark"]
    lr, hr = (pixels.astype(np.float32) / np.float32(255) for pixels in load_pair(picture, scale, protocol))
    image = torch.from_numpy(lr).permute(2, 0, 1) * 2 - 1
    with units:
        fields = {name: lift(models[name], image) for name in {name for name, _ in shortcuts}}
        rendered = [fields[name].render((hr.shape[0], hr.shape[1]), integral=integral) for name, integral in shortcuts]
    pictures = [(one.permute(1, 2, 0) * 0.5 + 0.5).clamp(0, 1).numpy() for one in rendered]
    return [psnr(one, hr, protocol.channel, protocol.border.pixels(scale)) for one in pictures]


def logged(path: Path | None) -> dict[str, float]:
    """The scores of earlier runs."""
    if path is None or not path.exists():
        return {}
    return dict(json.loads(line) for line in path.read_text().splitlines())


def all_scores(arguments: argparse.Namespace) -> Iterator[tuple[str, Scale, list[list[float]]]]:
    """Yield each set and scale with the scores of its pictures: the exact integral in fp32, then the shortcuts."""
    shortcuts = [("fp32", "exact"), *arguments.shortcuts]
    loaded, known = load(arguments.model).requires_grad_(False), logged(arguments.log)
    models = {name: copy.deepcopy(loaded).to(DTYPES[name]) for name in {name for name, _ in shortcuts}}
    units = EmulatedUnits() if arguments.emulate else nullcontext()
    for name in arguments.sets:
        (pictures,) = find_sets(arguments.data / name)
        for scale in parse_scales(arguments.scales):
            scores: list[list[float]] = []
            for picture in pictures.pictures[:: arguments.every]:
                keys = {each: f"{arguments.model} {name} {picture.name} ×{scale} {each}" for each in shortcuts}
                missing = [each for each, key in keys.items() if key not in known]
                for each, score in zip(missing, picture_scores(models, picture, scale, missing, units), strict=True):
                    known[keys[each]] = score
                    if arguments.log:
                        with arguments.log.open("a") as log:
                            log.write(json.dumps([keys[each], score]) + "\n")
                scores.append([known[key] for key in keys.values()])
            yield name, scale, scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--sets", nargs="+", default=["Set5", "Set14", "B100"])
    parser.add_argument("--scales", default="2,3,4")
    parser.add_argument("--shortcuts", type=parse_shortcut, nargs="+", default=[("fp32", "auto"), ("bf16", "auto")])
    parser.add_argument("--every", type=int, default=1, help="take every n-th picture of each set")
    parser.add_argument("--emulate", action="store_true")
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    columns = [f"{name}, {integral}: mean (worst)" for name, integral in arguments.shortcuts]
    print("| set | scale | exact | " + " | ".join(columns) + " |")
    print("| --- " * (3 + len(columns)) + "|")
    for name, scale, scores in all_scores(arguments):
        table = np.array(scores)
        losses = table[:, 1:] - table[:, :1]
        cells = [f"{mean:+.4f} ({worst:+.4f})" for mean, worst in zip(losses.mean(0), losses.min(0), strict=True)]
        print(f"| {name} | ×{scale} | {table[:, 0].mean():.3f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
