"""What the graphs are made of, without running them."""

import json
from collections import Counter
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
import torch

from export.exported import ALL, KERNELS, exporter, tame_model
from srno.checkpoints.build import create_model
from srno.checkpoints.native import Card
from srno.config import PRESETS, config_from_dict
from srno.errors import SRNOError
from srno.export.export import Exporter, GraphPrecision
from srno.export.graph import IR_VERSION, OPSET
from srno.operator.encoder import radius
from srno.operator.srno import SRNO

FORBIDDEN = {"GridSample", "Loop", "Scan", "Resize", "Einsum", "NonZero"}
"""Missing, slow or wrong in one of the runtimes that the graphs are for."""


def graphs_of(export: Exporter) -> Iterator[onnx.ModelProto]:
    yield export.whole()
    yield from export.parts().values()


def blocks(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and the branches inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from blocks(attribute.g)


@pytest.mark.parametrize("name", sorted(ALL))
@pytest.mark.parametrize("points", [None, 60])
def test_checker_and_strict_shape_inference_pass(name: str, points: int | None):
    for graph in graphs_of(exporter(name, points, "fp16" if points else "fp32")):
        onnx.checker.check_model(graph, full_check=True)
        onnx.shape_inference.infer_shapes(graph, check_type=True, strict_mode=True, data_prop=True)


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_tensor_has_a_type_and_named_or_known_sides(name: str):
    for model in graphs_of(exporter(name)):
        for block in blocks(model.graph):
            stated = {each.name: each.type.tensor_type for each in (*block.value_info, *block.output)}
            for node in block.node:
                for output in node.output:
                    tensor = stated[output]
                    assert tensor.elem_type
                    assert tensor.HasField("shape")
                    assert all(dim.WhichOneof("value") for dim in tensor.shape.dim), f"{output} has an unknown side"


def test_inputs_and_outputs_are_as_documented():
    graph = exporter("edsr").whole().graph
    assert [shape_of(each) for each in graph.input] == [("image", [1, 3, "h", "w"]), ("size", [2])]
    assert [shape_of(each) for each in graph.output] == [("enlarged", [1, 3, "H", "W"])]
    assert all(each.doc_string for each in (*graph.input, *graph.output))


def shape_of(value: onnx.ValueInfoProto) -> tuple[str, list[int | str]]:
    return value.name, [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("name", sorted(ALL))
@pytest.mark.parametrize("points", [None, 60])
def test_graphs_have_standard_operators_only_and_nothing_unused(name: str, points: int | None):
    for model in graphs_of(exporter(name, points)):
        assert [(each.domain, each.version) for each in model.opset_import] == [("", OPSET)]
        assert model.ir_version == IR_VERSION
        every = list(blocks(model.graph))
        nodes = [node for block in every for node in block.node]
        assert not {node.op_type for node in nodes} & FORBIDDEN
        assert {node.domain for node in nodes} == {""}
        used = {each for node in nodes for each in node.input} | {out.name for block in every for out in block.output}
        made = [each for node in nodes for each in node.output]
        held = [each.name for each in (*model.graph.initializer, *model.graph.input)]
        assert max(Counter(made + held).values()) == 1
        unused = set(made + held) - used - ({"image"} if not has_skip(name) else set())
        assert not unused


def has_skip(name: str) -> bool:
    return name in KERNELS or name.startswith(("lte", "mlp"))


@pytest.mark.parametrize("name", sorted(ALL))
def test_floats_are_in_the_precision_asked_for(name: str):
    """In fp16, all convolutions and the products at every point; the picture goes in and out in fp32."""
    kinds_of: dict[GraphPrecision, int] = {"fp32": onnx.TensorProto.FLOAT, "fp16": onnx.TensorProto.FLOAT16}
    for precision, kind in kinds_of.items():
        graph = exporter(name, None, precision).whole().graph
        kinds = {each.name: each.type.tensor_type.elem_type for each in (*graph.value_info, *graph.output)}
        products = [node for node in graph.node if node.op_type in ("Conv", "Gemm")]
        assert {kinds[node.output[0]] for node in products} == {kind}
        assert graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        assert kinds["enlarged"] == onnx.TensorProto.FLOAT


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_exports(name: str):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = create_model(name).eval()
    whole, *parts = graphs_of(Exporter(model=model, card=Card(name=name)))
    for graph in (whole, *parts):
        onnx.checker.check_model(graph)
    stored = sum(np.prod(each.dims) for each in whole.graph.initializer)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert parameters * 0.9 < stored < parameters * 1.3


def test_metadata_holds_config_card_and_licence():
    card = Card(name="mine", licence="CC-BY-4.0", results={"Set5": {"x2": 37.5}})
    export = Exporter(model=tame_model("rdn"), card=card, points=500, precision="fp16")
    for part, graph in {"whole": export.whole(), **export.parts()}.items():
        stored = {each.key: each.value for each in graph.metadata_props}
        assert config_from_dict(json.loads(stored["config"])) == tame_model("rdn").config
        assert Card(**json.loads(stored["card"])) == card
        assert stored["licence"] == "CC-BY-4.0"
        assert (stored["part"], stored["integral"], stored["precision"]) == (part, "500", "fp16")
        assert int(stored["radius"]) == radius(tame_model("rdn").encoder)


def test_the_same_model_gives_the_same_bytes():
    first, second = (exporter("edsr", 60).whole().SerializeToString(deterministic=True) for _ in range(2))
    assert first == second


class Doubled(torch.nn.Module):
    channels, radius = 3, 1

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return 2 * image


def test_a_custom_encoder_is_refused_by_name():
    model = SRNO(PRESETS["light"], Doubled())  # pyright: ignore[reportArgumentType]
    with pytest.raises(SRNOError, match="Doubled"):
        Exporter(model=model, card=Card(name="x")).whole()


def test_wrong_options_are_refused():
    with pytest.raises(SRNOError, match="integral 0"):
        exporter("edsr", 0)
    with pytest.raises(SRNOError, match="precision 'int8'"):
        exporter("edsr", None, "int8")  # pyright: ignore[reportArgumentType]
