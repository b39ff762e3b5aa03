"""Models whose pictures stay in range, their graphs in onnxruntime, and the engine's answers to compare with."""

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray

from rivals.rival_models import CONFIGS as RIVALS
from rivals.rival_models import random_rival
from small_models import CONFIGS
from srno.checkpoints.native import Card
from srno.export.export import Exporter, GraphPrecision
from srno.field.field import lift
from srno.operator.model import Model

ALL = CONFIGS | RIVALS
"""Small models of every system: both liftings, one to three layers, EDSR and RDN, all rivals."""
KERNELS = tuple(CONFIGS)
"""Those with kernel integrals."""
ALLOWED = {"fp32": 1e-4, "fp16": 2e-2}
"""Largest difference to the engine in fp32, as a share of [-1, 1]."""

Array = NDArray[np.float32]


@cache
def tame_model(name: str) -> Model:
    """Random numbers everywhere, and a last layer that keeps the values within [-1, 1], where nothing is clipped."""
    model = random_rival(ALL[name], dtype=torch.float32).requires_grad_(False)
    *_, weight, bias = model.parameters()
    with torch.no_grad():
        size = float(lift(model, torch.zeros(3, 9, 9)).render((20, 20)).abs().max())
        weight *= 0.15 / size
        bias *= 0.15 / size
    return model


def exporter(name: str, points: int | None = None, precision: GraphPrecision = "fp32") -> Exporter:
    return Exporter(model=tame_model(name), card=Card(name=name), points=points, precision=precision)


def open_session(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


@cache
def whole_session(
    name: str, points: int | None = None, precision: GraphPrecision = "fp32"
) -> onnxruntime.InferenceSession:
    return open_session(exporter(name, points, precision).whole())


def run_session(session: onnxruntime.InferenceSession, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(each) for each in session.run(None, inputs)]


def run_whole(session: onnxruntime.InferenceSession, image: Array, size: tuple[int, int]) -> Array:
    (enlarged,) = run_session(session, {"image": image, "size": np.array(size, np.int64)})
    return enlarged


def picture(height: int, width: int, seed: int = 0) -> Array:
    """(1, 3, height, width) in the middle of [0, 1]."""
    return np.random.default_rng(seed).random((1, 3, height, width), np.float32) * 0.4 + np.float32(0.3)


def engine(model: Model, image: Array, size: tuple[int, int], points: int | None = None) -> Array:
    """The same by the engine in fp32, (1, 3, H, W) in [0, 1]."""
    rgb = lift(model, torch.from_numpy(image) * 2 - 1).render(size, integral=points or "exact")
    return (rgb * 0.5 + 0.5).clamp(0, 1).unsqueeze(0).numpy()


def difference(actual: Array, expected: Array) -> float:
    """Largest difference as a share of [-1, 1]; clipped values would hide one, so most must not be."""
    assert actual.shape == expected.shape, f"{actual.shape} instead of {expected.shape}"
    assert np.mean((expected > 0) & (expected < 1)) > 0.5, "most values are clipped"
    return 2 * float(np.abs(actual - expected).max())


def load_client() -> Any:
    """The reference client in examples/."""
    path = Path(__file__).parents[2] / "examples" / "onnx_client.py"
    spec = importlib.util.spec_from_file_location("onnx_client", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
