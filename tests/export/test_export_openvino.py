"""The graphs in OpenVINO, which computes int64 as int32 and simplifies graphs by rules of its own."""

from typing import Any

import numpy as np
import pytest

from export.exported import ALL, ALLOWED, KERNELS, difference, engine, exporter, picture, tame_model
from small_models import CONFIGS
from srno.export.export import GraphPrecision

openvino = pytest.importorskip("openvino", reason="OpenVINO is not part of srno[dev]: pip install openvino")
IMAGE, SIZE = picture(9, 7), (23, 31)


class Compiled:
    """A graph for the CPU in fp32; OpenVINO prefers bf16 on CPUs that have it."""

    def __init__(self, graph: Any) -> None:
        core = openvino.Core()
        model = core.read_model(graph.SerializeToString())
        self.model = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def __call__(self, **inputs: np.ndarray) -> list[np.ndarray]:
        found = self.model({port.any_name: inputs[port.any_name] for port in self.model.inputs})
        return [found[port].copy() for port in self.model.outputs]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", sorted(ALL))
def test_the_whole_graph(name: str, precision: GraphPrecision):
    for points in (None, 60) if name in KERNELS else (None,):
        (actual,) = Compiled(exporter(name, points, precision).whole())(image=IMAGE, size=np.array(SIZE))
        assert difference(actual, engine(tame_model(name), IMAGE, SIZE, points)) < ALLOWED[precision]


@pytest.mark.parametrize("name", KERNELS)
def test_the_exact_integral_in_parts(name: str):
    encoder, integral, render = (Compiled(graph) for graph in exporter(name).parts().values())
    inputs = {"image": IMAGE, "size": np.array(SIZE)}
    (inputs["features"],) = encoder(**inputs)
    config = CONFIGS[name]
    A, a = (np.zeros((config.iterations, *[config.d_z] * dims), np.float32) for dims in (2, 1))
    for t in range(config.iterations):
        sums = np.zeros((config.heads, *[config.head_width + 1] * 2), np.float32)
        for tile in ([0, 0, 11, 31], [11, 0, 23, 14], [11, 14, 23, 31]):
            sums, A[t], a[t] = integral(**inputs, tile=np.array(tile), sums=sums, A=A[:t], a=a[:t])
    (actual,) = render(**inputs, tile=np.array([0, 0, *SIZE]), A=A, a=a)
    assert difference(actual, engine(tame_model(name), IMAGE, SIZE)) < ALLOWED["fp32"]
