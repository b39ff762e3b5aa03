"""Tensors of an ONNX graph under construction: each has a type and a symbolic shape, and operators as in numpy.

Shapes are computed as the graph is built: a mistake raises where it is made, and the graph states every shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from srno.export.graph import Graph

DType: TypeAlias = Literal["float32", "float16", "int64", "bool"]
Dim: TypeAlias = int | str
"""A size, or the name of one that is only known at run time."""
Shape: TypeAlias = tuple[Dim, ...]
Operand: TypeAlias = "Value | int | float"


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of the graph."""

    graph: "Graph"
    name: str
    kind: DType
    shape: Shape

    def __add__(self, other: Operand) -> "Value":
        return self.graph.elementwise("Add", self, other)

    def __sub__(self, other: Operand) -> "Value":
        return self.graph.elementwise("Sub", self, other)

    def __mul__(self, other: Operand) -> "Value":
        return self.graph.elementwise("Mul", self, other)

    def __truediv__(self, other: Operand) -> "Value":
        """Divide; integers round toward zero."""
        return self.graph.elementwise("Div", self, other)

    def __gt__(self, other: Operand) -> "Value":
        return self.graph.elementwise("Greater", self, other, kind="bool")

    def __le__(self, other: Operand) -> "Value":
        return self.graph.elementwise("LessOrEqual", self, other, kind="bool")

    def __matmul__(self, other: "Value") -> "Value":
        """Matrix product (..., m, k) @ (k, n), or of two stacks of equally many matrices."""
        batch, (rows, inner), (same, columns) = self.shape[:-2], self.shape[-2:], other.shape[-2:]
        assert inner == same, f"{self.shape} @ {other.shape}"
        assert other.shape[:-2] in ((), batch), f"{self.shape} @ {other.shape}"
        return self.graph.op("MatMul", [self, other], (*batch, rows, columns))

    def at_least(self, other: Operand) -> "Value":
        """Return the elementwise maximum."""
        return self.graph.elementwise("Max", self, other)

    def at_most(self, other: Operand) -> "Value":
        """Return the elementwise minimum."""
        return self.graph.elementwise("Min", self, other)

    def clip(self, low: float, high: float) -> "Value":
        """Clip floats to a range."""
        bounds = [self.graph.constant(bound, self.kind) for bound in (low, high)]
        return self.graph.op("Clip", [self, *bounds], self.shape)

    def apply(self, function: Literal["Abs", "Cos", "Erf", "Relu", "Sin", "Sqrt"]) -> "Value":
        """Apply an elementwise function."""
        return self.graph.op(function, [self], self.shape)

    def cast(self, kind: DType) -> "Value":
        """Convert to another type."""
        if kind == self.kind:
            return self
        return self.graph.op("Cast", [self], self.shape, kind, to=self.graph.type_number(kind))

    def reshape(self, target: "Sequence[int] | Value", shape: Shape) -> "Value":
        """Reshape to `shape`; in `target`, 0 copies a dimension and -1 is inferred."""
        to = target if isinstance(target, Value) else self.graph.constant(list(target), "int64")
        return self.graph.op("Reshape", [self, to], shape)

    def expand_dims(self, *axes: int) -> "Value":
        """Insert dimensions of size 1 at these places of the result."""
        shape = list(self.shape)
        for axis in sorted(axes):
            shape.insert(axis, 1)
        return self.graph.op("Unsqueeze", [self, self.graph.constant(list(axes), "int64")], tuple(shape))

    def squeeze(self, axis: int = 0) -> "Value":
        """Remove a dimension of size 1."""
        assert self.shape[axis] == 1, f"{self.shape} without dimension {axis}"
        shape = (*self.shape[:axis], *self.shape[axis + 1 :])
        return self.graph.op("Squeeze", [self, self.graph.constant([axis], "int64")], shape)

    def transpose(self, *order: int) -> "Value":
        """Permute the dimensions."""
        return self.graph.op("Transpose", [self], tuple(self.shape[i] for i in order), perm=list(order))

    def gather(self, index: "Value | int", axis: int = 0) -> "Value":
        """Take entries along an axis; an int takes one and removes the axis."""
        places = self.graph.constant(index, "int64") if isinstance(index, int) else index
        shape = (*self.shape[:axis], *places.shape, *self.shape[axis + 1 :])
        return self.graph.op("Gather", [self, places], shape, axis=axis)

    def slice(self, axis: int, start: "Value | int", stop: "Value | int", dim: Dim) -> "Value":
        """Take the entries from `start` (1,) to `stop` (1,) along an axis; `dim` is their number."""
        ends = [self.graph.constant([end], "int64") if isinstance(end, int) else end for end in (start, stop)]
        shape = (*self.shape[:axis], dim, *self.shape[axis + 1 :])
        return self.graph.op("Slice", [self, *ends, self.graph.constant([axis], "int64")], shape)

    def sum(self, axis: int) -> "Value":
        """Sum along an axis, which is kept with size 1."""
        shape = (*self.shape[:axis], 1, *self.shape[axis + 1 :])
        return self.graph.op("ReduceSum", [self, self.graph.constant([axis], "int64")], shape, keepdims=1)

    def length(self, axis: int) -> "Value":
        """Size of a dimension, (1,)."""
        return self.graph.op("Shape", [self], (1,), "int64", start=axis, end=axis + 1)


def broadcast(a: Shape, b: Shape) -> Shape:
    """Return the shape that two shapes broadcast to; a name matches itself and 1."""
    length = max(len(a), len(b))
    wide_a, wide_b = ((1,) * (length - len(shape)) + shape for shape in (a, b))
    pairs = list(zip(wide_a, wide_b, strict=True))
    assert all(one == other or 1 in (one, other) for one, other in pairs), f"{a} does not broadcast with {b}"
    return tuple(other if one == 1 else one for one, other in pairs)
