"""The encoders EDSR and RDN."""

from torch import nn

from srno.errors import SRNOError
from srno.export.graph import Graph
from srno.export.layers import convolve
from srno.export.value import Value
from srno.operator.edsr import EDSR, ResidualBlock
from srno.operator.rdn import RDN, ResidualDenseBlock
from srno.rivals.fixed import ShiftedEDSR


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
