"""An ONNX graph under construction: inputs, weights, nodes and outputs."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from srno.errors import require
from srno.export.value import Dim, DType, Operand, Shape, Value, broadcast

if TYPE_CHECKING:
    import onnx

OPSET = 17
IR_VERSION = 8
"""Those of ONNX 1.12 (2022): older than every runtime of the last two years, and no newer operator is needed."""


@dataclass(frozen=True)
class _Block:
    """The nodes of a graph or of a branch, and their outputs."""

    nodes: "list[onnx.NodeProto]" = field(default_factory=list["onnx.NodeProto"])
    values: dict[tuple[str, ...], Value] = field(default_factory=dict[tuple[str, ...], Value])
    """By operator, inputs and attributes: equal expressions share one node."""


class Graph:
    """Nodes and weights; matrix products and convolutions are in `precision`."""

    def __init__(self, precision: DType) -> None:
        self.onnx: Any = require("onnx", "onnx")
        self.precision: DType = precision
        self._block = _Block()
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: dict[str, Value] = {}
        self._about: dict[str, str] = {}
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._values: dict[str, Value] = {}
        self._counts: dict[str, int] = {}
        self._scope = ""

    def input(self, name: str, kind: DType, shape: Shape, about: str) -> Value:
        """Add an input with its description."""
        value = Value(self, name, kind, shape)
        self._inputs.append(self._info(name, value, about))
        return value

    def output(self, name: str, value: Value, about: str) -> None:
        """Make a value an output of this name, with its description."""
        self._outputs[name] = value
        self._about[name] = about

    def weight(self, name: str, tensor: Tensor, kind: DType | None = None) -> Value:
        """Return a parameter, in the precision of the graph unless `kind` is given; added at first use."""
        kind = kind or self.precision
        if name not in self._values:
            array = tensor.detach().cpu().numpy().astype(kind)
            self._values[name] = self._initializer(name, array, kind)
        return self._values[name]

    def constant(self, number: float | list[int], kind: DType) -> Value:
        """Return a number or a vector of integers."""
        name = f"{number}:{kind}"
        if name not in self._values:
            self._values[name] = self._initializer(name, np.asarray(number, kind), kind)
        return self._values[name]

    def table(self, name: str, numbers: list[int]) -> Value:
        """Return a named vector of integers."""
        if name not in self._values:
            self._values[name] = self._initializer(name, np.asarray(numbers, "int64"), "int64")
        return self._values[name]

    def _initializer(self, name: str, array: NDArray[Any], kind: DType) -> Value:
        self._initializers[name] = self.onnx.numpy_helper.from_array(np.asarray(array, order="C"), name)
        return Value(self, name, kind, array.shape)

    @contextmanager
    def scope(self, name: str) -> Generator[None]:
        """Prefix the names of the nodes added inside."""
        before, self._scope = self._scope, f"{self._scope}{name}/"
        try:
            yield
        finally:
            self._scope = before

    def op(
        self, operator: str, inputs: list[Value], shape: Shape, kind: DType | None = None, **attributes: Any
    ) -> Value:
        """Add a node with one output, of the type of the first input unless `kind` is given."""
        key = (operator, *(each.name for each in inputs), repr(attributes))
        if key not in self._block.values:
            name = self._new_name(operator)
            names = [each.name for each in inputs]
            self._block.nodes.append(self.onnx.helper.make_node(operator, names, [name], name, **attributes))
            self._block.values[key] = Value(self, name, kind or inputs[0].kind, shape)
        return self._block.values[key]

    def elementwise(self, operator: str, a: Value, b: Operand, kind: DType | None = None) -> Value:
        """Add an operator of two inputs whose shapes broadcast."""
        other = b if isinstance(b, Value) else self.constant(b, a.kind)
        assert a.kind == other.kind, f"{operator} of {a.kind} and {other.kind}"
        return self.op(operator, [a, other], broadcast(a.shape, other.shape), kind)

    def affine(self, a: Value, b: Value, c: Value, *, transposed: bool = False) -> Value:
        """a @ b + c for matrices, or a @ bᵀ + c if `transposed`; c broadcasts."""
        inner, columns = b.shape[::-1] if transposed else b.shape
        shape = (a.shape[0], columns)
        assert (a.shape[1], broadcast(shape, c.shape)) == (inner, shape), f"{a.shape} @ {b.shape} + {c.shape}"
        return self.op("Gemm", [a, b, c], shape, None, transB=int(transposed))

    def convolution(self, x: Value, weight: Value, *bias: Value) -> Value:
        """Convolution of x (1, C, h, w) with stride 1 and zero padding that keeps the size."""
        outputs, inputs, side, _ = weight.shape
        assert x.shape[1] == inputs, f"{x.shape} * {weight.shape}"
        assert isinstance(side, int)
        return self.op("Conv", [x, weight, *bias], (1, outputs, *x.shape[2:]), pads=[side // 2] * 4)

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """Concatenate values along an axis of known sizes."""
        dims = [dim for part in parts if isinstance(dim := part.shape[axis], int)]
        assert len(dims) == len(parts), f"sizes along axis {axis} are unknown: {[part.shape for part in parts]}"
        shape = (*parts[0].shape[:axis], sum(dims), *parts[0].shape[axis + 1 :])
        return self.op("Concat", list(parts), shape, axis=axis)

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        """a where the condition is true, b elsewhere."""
        return self.op("Where", [condition, a, b], broadcast(condition.shape, broadcast(a.shape, b.shape)), a.kind)

    def arange(self, start: Value, stop: Value, dim: Dim) -> Value:
        """Integers from `start` (1,) to `stop` (1,), exclusive; `dim` is their number."""
        ends = [end.squeeze() for end in (start, stop)]
        return self.op("Range", [*ends, self.constant(1, "int64")], (dim,))

    def when(self, condition: Value, state: Value, body: Callable[[Value], Value]) -> Value:
        """body(state) if the condition () is true, else the unchanged state."""
        name = self._new_name("If")
        branches = {
            "then_branch": self._branch(f"{name}/then", state, body),
            "else_branch": self._branch(f"{name}/else", state, lambda same: self.op("Identity", [same], same.shape)),
        }
        return self.op("If", [condition], state.shape, state.kind, **branches)

    def _branch(self, name: str, state: Value, body: Callable[[Value], Value]) -> "onnx.GraphProto":
        outer, self._block = self._block, _Block()
        with self.scope(name):
            result = body(state)
        assert result.shape == state.shape, f"{state.shape} becomes {result.shape}"
        inner, self._block = self._block, outer
        inside = [self._info(each.name, each) for each in inner.values.values() if each is not result]
        return self.onnx.helper.make_graph(inner.nodes, name, [], [self._info(result.name, result)], value_info=inside)

    def finish(self, name: str, about: str, metadata: dict[str, str]) -> "onnx.ModelProto":
        """Return the graph as a model, with the shapes of all values and `metadata`."""
        helper = self.onnx.helper
        for output, value in self._outputs.items():
            self._rename(value.name, output)
        shown = {value.name for value in self._outputs.values()}
        graph = helper.make_graph(
            self._block.nodes,
            name,
            self._inputs,
            [self._info(output, value, self._about[output]) for output, value in self._outputs.items()],
            list(self._initializers.values()),
            about,
            value_info=[
                self._info(value.name, value) for value in self._block.values.values() if value.name not in shown
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], doc_string=about)
        model.ir_version = IR_VERSION
        helper.set_model_props(model, metadata)
        return model

    def type_number(self, kind: DType) -> int:
        """Number of a type in the ONNX format."""
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def _info(self, name: str, value: Value, about: str = "") -> "onnx.ValueInfoProto":
        return self.onnx.helper.make_tensor_value_info(name, self.type_number(value.kind), value.shape, about)

    def _rename(self, old: str, new: str) -> None:
        for node in self._block.nodes:
            for names in (node.input, node.output):
                for place, name in enumerate(names):
                    if name == old:
                        names[place] = new

    def _new_name(self, operator: str) -> str:
        key = self._scope + operator
        self._counts[key] = self._counts.get(key, -1) + 1
        return f"{key}_{self._counts[key]}"
