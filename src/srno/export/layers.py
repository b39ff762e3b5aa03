"""Building blocks that several systems share (convolutions, linear maps, gelu, bilinear values), and the encoders."""

from math import sqrt

from torch import nn

from srno.errors import SRNOError
from srno.export.axes import Axis
from srno.export.graph import Graph
from srno.export.value import Value
from srno.operator.edsr import EDSR, ResidualBlock
from srno.operator.rdn import RDN, ResidualDenseBlock
from srno.rivals.fixed import ShiftedEDSR


def convolve(graph: Graph, name: str, conv: nn.Module, x: Value) -> Value:
    """Add a convolution of the model, (1, C, h, w) → the same size."""
    assert isinstance(conv, nn.Conv2d)
    assert conv.bias is not None
    weight, bias = graph.weight(f"{name}.weight", conv.weight), graph.weight(f"{name}.bias", conv.bias)
    return graph.convolution(x, weight, bias)


def linear(graph: Graph, name: str, layer: nn.Linear, x: Value) -> Value:
    """Add a linear map of the model, (n, inputs) → (n, outputs)."""
    weight, bias = graph.weight(f"{name}.weight", layer.weight.T), graph.weight(f"{name}.bias", layer.bias)
    return graph.affine(x, weight, bias)


def gelu(x: Value) -> Value:
    """gelu by the error function, in the order of operators that runtimes recognise and fuse."""
    return x * ((x / sqrt(2)).apply("Erf") + 1.0) * 0.5


def bilinear(picture: Value, y: tuple[Value, Value, Value], x: tuple[Value, Value, Value]) -> Value:
    """Values of a picture (1, 3, h, w) on a grid, from the stencils of `Axis.between`."""
    low, high, weight = y
    above = picture.gather(low, 2)
    rows = above + (picture.gather(high, 2) - above) * weight.cast(picture.kind).expand_dims(1)
    low, high, weight = x
    left = rows.gather(low, 3)
    return left + (rows.gather(high, 3) - left) * weight.cast(picture.kind)


def pixels_last(features: Value) -> Value:
    """(1, C, h, w) → (h, w, C)."""
    # Squeeze before Transpose crashes onnxruntime 1.31 if a matrix product in fp16 follows.
    return features.transpose(0, 2, 3, 1).squeeze()


def to_picture(graph: Graph, name: str, layer: nn.Linear, hidden: Value, y: Axis, x: Axis) -> Value:
    """Add the last linear map, (rows·columns, inputs) on a grid → RGB (1, 3, rows, columns), float32."""
    weight = graph.weight(f"{name}.weight", layer.weight)
    bias = graph.weight(f"{name}.bias", layer.bias.unsqueeze(1))
    planes = graph.affine(weight, hidden, bias, transposed=True)
    sides = [axis.places.length(0) for axis in (y, x)]
    target = graph.concat([graph.constant([1, 3], "int64"), *sides], 0)
    return planes.reshape(target, (1, 3, y.dim, x.dim)).cast("float32")


def encode(graph: Graph, encoder: nn.Module, image: Value) -> Value:
    """Add the encoder: image (1, 3, h, w) in [0, 1], float32 → features (1, C, h, w)."""
    with graph.scope("encoder"):
        signed = image * 2.0 - 1.0
        match encoder:
            case ShiftedEDSR():
                mean = graph.weight("encoder.mean", encoder.mean.reshape(3, 1, 1), "float32")
                return _edsr(graph, encoder, (signed - mean).cast(graph.precision))
            case EDSR():
                return _edsr(graph, encoder, signed.cast(graph.precision))
            case RDN():
                return _rdn(graph, encoder, signed.cast(graph.precision))
            case _:
                raise SRNOError(f"encoder {type(encoder).__qualname__} is custom; EDSR and RDN can be exported")


def _edsr(graph: Graph, encoder: EDSR, image: Value) -> Value:
    shallow = x = convolve(graph, "encoder.head", encoder.head, image)
    for i, block in enumerate(encoder.blocks):
        assert isinstance(block, ResidualBlock)
        inner = convolve(graph, f"encoder.blocks.{i}.conv1", block.conv1, x).apply("Relu")
        x = convolve(graph, f"encoder.blocks.{i}.conv2", block.conv2, inner) + x
    return shallow + convolve(graph, "encoder.tail", encoder.tail, x)


def _rdn(graph: Graph, encoder: RDN, image: Value) -> Value:
    shallow = convolve(graph, "encoder.shallow1", encoder.shallow1, image)
    x = convolve(graph, "encoder.shallow2", encoder.shallow2, shallow)
    outputs: list[Value] = []
    for i, block in enumerate(encoder.blocks):
        assert isinstance(block, ResidualDenseBlock)
        dense = x
        for j, conv in enumerate(block.convs):
            grown = convolve(graph, f"encoder.blocks.{i}.convs.{j}", conv, dense).apply("Relu")
            dense = graph.concat([dense, grown], 1)
        x = x + convolve(graph, f"encoder.blocks.{i}.fusion", block.fusion, dense)
        outputs.append(x)
    fused = convolve(graph, "encoder.fusion1", encoder.fusion1, graph.concat(outputs, 1))
    return shallow + convolve(graph, "encoder.fusion2", encoder.fusion2, fused)
