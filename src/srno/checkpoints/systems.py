"""The public systems, one function each: from a public state dict to our config and our tensors.

Hyper-parameters are deduced from the tensors, so that other widths, depths and encoders load as well.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from srno.checkpoints.renaming import MissingError, Renamer, State, rename_edsr, rename_encoder
from srno.config import (
    EncoderConfig,
    FixedScaleConfig,
    LIIFConfig,
    LTEConfig,
    MetaSRConfig,
    ModelConfig,
    RDNConfig,
    SRNOConfig,
)
from srno.errors import SRNOError

Convert: TypeAlias = Callable[[Renamer], tuple[ModelConfig, State]]


def srno(renamer: Renamer) -> tuple[ModelConfig, State]:
    """conv00 is the lifting, conv0, conv1, … the Galerkin layers, fc1 and fc2 the projection."""
    if not renamer.has("conv00"):
        raise MissingError("conv00.weight")
    encoder = rename_encoder(renamer)
    heads = renamer.shape("conv0.kln")[0]
    config = SRNOConfig(
        encoder=encoder,
        d_z=renamer.shape("conv00")[0],
        heads=heads,
        iterations=renamer.count("conv{}.qkv_proj"),
        projection_width=renamer.shape("fc1")[0],
    )
    renamer.linear("conv00", "lifting.linear")
    for t in range(config.iterations):
        _galerkin(renamer, f"conv{t}", f"layers.{t}", heads)
    renamer.linear("fc1", "projection.hidden")
    renamer.linear("fc2", "projection.rgb")
    return config, renamer.finish()


def _galerkin(renamer: Renamer, public: str, ours: str, heads: int) -> None:
    """q, k and v are interleaved per head in one map: rows are (heads, 3, width)."""
    for part in ("weight", "bias"):
        qkv = renamer.take(f"{public}.qkv_proj.{part}")
        if qkv.shape[0] % (3 * heads):
            raise SRNOError(f"{public}.qkv_proj.{part} has {qkv.shape[0]} rows, not a multiple of 3 × {heads} heads")
        split = qkv.reshape(heads, 3, -1, *qkv.shape[1:2])
        for i, name in enumerate(("query", "key", "value")):
            renamer.ours[f"{ours}.{name}.{part}"] = split[:, i].flatten(0, 1)
        for norm, name in (("kln", "key_norm"), ("vln", "value_norm")):
            renamer.ours[f"{ours}.{name}.{part}"] = renamer.take(f"{public}.{norm}.{part}").squeeze(1)
    renamer.linear(f"{public}.o_proj1", f"{ours}.W1")
    renamer.linear(f"{public}.o_proj2", f"{ours}.W2")


def liif(renamer: Renamer) -> tuple[ModelConfig, State]:
    encoder = rename_encoder(renamer)
    width, depth = _perceptron(renamer, "imnet.layers")
    return LIIFConfig(encoder=encoder, width=width, depth=depth), renamer.finish()


def lte(renamer: Renamer) -> tuple[ModelConfig, State]:
    """Channels 2j and 2j+1 of freq are the y and x parts of one frequency."""

    def halves(a: Tensor) -> Tensor:
        return torch.cat([a[0::2], a[1::2]])

    return _lte(renamer, "imnet.layers", halves)


def lte_fast(renamer: Renamer) -> tuple[ModelConfig, State]:
    """LTE+, with the y parts of all frequencies before their x parts, as we have them."""
    return _lte(renamer, "layers", lambda a: a)


def _lte(renamer: Renamer, layers: str, arrange: Callable[[Tensor], Tensor]) -> tuple[ModelConfig, State]:
    encoder = rename_encoder(renamer)
    frequencies = renamer.shape("phase")[0]
    renamer.conv("coef", "coefficient")
    renamer.conv("freq", "frequency")
    for part in ("weight", "bias"):
        renamer.ours[f"frequency.{part}"] = arrange(renamer.ours[f"frequency.{part}"])
    renamer.ours["phase.weight"] = renamer.take("phase.weight")
    width, depth = _perceptron(renamer, layers)
    return LTEConfig(encoder=encoder, frequencies=frequencies, width=width, depth=depth), renamer.finish()


def metasr(renamer: Renamer) -> tuple[ModelConfig, State]:
    encoder = rename_encoder(renamer)
    width, _ = _perceptron(renamer, "imnet.layers")
    return MetaSRConfig(encoder=encoder, width=width), renamer.finish()


def _perceptron(renamer: Renamer, public: str) -> tuple[int, int]:
    """Linear maps at the even indices of a sequence, ReLU at the odd ones → hidden width, number of hidden layers."""
    width = renamer.shape(f"{public}.0")[0]
    count = renamer.count(f"{public}.{{}}", step=2)
    for i in range(count):
        renamer.linear(f"{public}.{2 * i}", f"perceptron.layers.{i}")
    return width, max(count - 1, 1)


def fixed_scale(renamer: Renamer) -> tuple[ModelConfig, State]:
    """EDSR or RDN with its tail, on values in [-1, 1]."""
    renamer.nest("encoder.")
    encoder = rename_encoder(renamer)
    return FixedScaleConfig(encoder=encoder, scale=_tail(renamer, encoder)), renamer.finish()


def _tail(renamer: Renamer, encoder: EncoderConfig) -> int:
    """Convolutions with pixel shuffles between, the last to RGB → the scale factor."""
    if isinstance(encoder, RDNConfig):
        convs = [f"encoder.UPNet.{2 * i}" for i in range(max(renamer.count("encoder.UPNet.{}", step=2), 2))]
    else:
        steps = max(renamer.count("encoder.tail.0.{}", step=2), 1)
        convs = [*(f"encoder.tail.0.{2 * i}" for i in range(steps)), "encoder.tail.1"]
    maps, channels = renamer.shape(convs[0])[0], renamer.shape(convs[1])[1]
    scale = {(4, 2): 2, (9, 2): 3, (4, 3): 4}.get((maps // channels, len(convs)))
    if scale is None:
        raise SRNOError(f"a tail of {len(convs)} convolutions, the first to {maps} maps, does not match ×2, ×3 or ×4")
    for i, name in enumerate(convs):
        renamer.conv(name, f"tail.{2 * i}")
    return scale


def original_edsr(renamer: Renamer) -> tuple[ModelConfig, State]:
    """The original EDSR works on 0…255 minus a mean colour m: the range is folded into the first and last weights.

    With v = 127.5·(u + 1) for our u in [-1, 1], v - m = 127.5·(u - ū) with ū = m/127.5 - 1, which is linear once ū is
    subtracted; and the last convolution's values w become (w + m)/127.5 - 1.
    """
    renamer.nest("encoder.")
    mean_in, mean_out = (_mean(renamer, name, sign) for name, sign in (("sub_mean", -1), ("add_mean", 1)))
    encoder = rename_edsr(renamer)
    config = FixedScaleConfig(encoder=encoder, scale=_tail(renamer, encoder), mean_shift=True)
    ours = renamer.finish()
    ours["encoder.mean"] = mean_in / 127.5 - 1
    ours["encoder.head.weight"] = ours["encoder.head.weight"] * 127.5
    last = f"tail.{4 if config.scale == 4 else 2}"
    ours[f"{last}.weight"] = ours[f"{last}.weight"] / 127.5
    ours[f"{last}.bias"] = (ours[f"{last}.bias"] + mean_out) / 127.5 - 1
    if encoder.channels == 256:  # the published large EDSR scales its residuals by 0.1, which no tensor stores
        for i in range(encoder.blocks):
            for part in ("weight", "bias"):
                ours[f"encoder.blocks.{i}.conv2.{part}"] = ours[f"encoder.blocks.{i}.conv2.{part}"] * 0.1
    return config, ours


def _mean(renamer: Renamer, name: str, sign: int) -> Tensor:
    """Return the colour (3,) of a mean shift, in 0…255; raise an SRNOError for any other map."""
    weight, bias = renamer.take(f"encoder.{name}.weight"), renamer.take(f"encoder.{name}.bias")
    if not torch.equal(weight.flatten(1).cpu(), torch.eye(3, dtype=weight.dtype)) or bias.abs().max() <= 1:
        raise SRNOError(f"{name} does not shift values in 0…255, so these are not weights of the original EDSR")
    return sign * bias


SYSTEMS: dict[str, Convert] = {
    "sronet": srno,
    "liif": liif,
    "lte": lte,
    "lte-fast": lte_fast,
    "metasr": metasr,
    "edsr-baseline": fixed_scale,
    "edsr": fixed_scale,
    "rdn": fixed_scale,
    "original EDSR": original_edsr,
}
