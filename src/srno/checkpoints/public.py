"""Checkpoints as written by the public code of SRNO and its rivals, read without running code from them.

The usual form is {'model': {'name', 'args', 'sd'}, …}; the original EDSR files contain only a state dict.
"""

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from srno.checkpoints.native import Card, Checkpoint, check_state
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

REQUIRED_SWITCHES = ("local_ensemble", "feat_unfold", "cell_decode")
"""Arguments of LIIF that the tensors do not show, or only in a shape; files with `False` are refused."""

Convert: TypeAlias = Callable[[Renamer], tuple[ModelConfig, State]]


def read_public(path: Path) -> Checkpoint:
    """Read and check a public checkpoint of any known system."""
    name, state = _unpack(path, _load_safely(path))
    if name not in SYSTEMS:
        raise SRNOError(f"{path}: a checkpoint of {name!r}; systems that can be read: {', '.join(SYSTEMS)}")
    try:
        config, ours = SYSTEMS[name](Renamer(state))
    except MissingError as missing:
        raise SRNOError(f"{path}: tensor {missing} is missing from this {name} checkpoint") from None
    except SRNOError as error:
        raise SRNOError(f"{path}: {error}") from None
    except (ArithmeticError, IndexError, RuntimeError) as error:
        raise SRNOError(f"{path}: a tensor does not have the shape that {name} requires ({error})") from None
    check_state(config, ours, path)
    card = Card(name=path.stem, recipe=f"converted from a public {name} checkpoint, {path.name}")
    return Checkpoint(config=config, state=ours, card=card)


def _load_safely(path: Path) -> Any:
    try:
        with warnings.catch_warnings(action="ignore"):  # the error message already gives the reason
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = next((line.strip() for line in str(error).splitlines() if "GLOBAL" in line), "not plain tensors")
        raise SRNOError(f"{path}: refused, it contains more than weights ({reason})") from None
    except Exception as error:  # a damaged pickle can raise any exception
        reason = (str(error).splitlines() or ["no content"])[0]
        raise SRNOError(f"{path}: not a readable checkpoint ({reason})") from None


def _unpack(path: Path, content: Any) -> tuple[str, State]:
    """Return the name of the system and its state dict."""
    if _is_state(content) and "head.0.weight" in content and "tail.1.weight" in content:
        return "original EDSR", dict(cast(State, content))
    model: Any = content.get("model") if isinstance(content, dict) else None
    name: Any = model.get("name") if isinstance(model, dict) else None
    state: Any = model.get("sd") if isinstance(model, dict) else None
    if not (isinstance(name, str) and _is_state(state)):
        raise SRNOError(f"{path}: not a public checkpoint (no model name with a state dict of tensors inside)")
    args: Any = model.get("args")
    for switch in REQUIRED_SWITCHES if isinstance(args, dict) else ():
        if args.get(switch) is False:
            raise SRNOError(f"{path}: trained with {switch} off, an ablation of {name} that cannot be read")
    return name, dict(cast(State, state))


def _is_state(state: Any) -> bool:
    if not (isinstance(state, dict) and state):
        return False
    entries = cast(dict[Any, Any], state).items()
    return all(isinstance(key, str) and isinstance(value, Tensor) for key, value in entries)


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
