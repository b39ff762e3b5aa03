"""The public systems' parity checkpoints, rebuilt from the seed that they were drawn with.

The files themselves take 7 MB. Their weights are torch's default initialisation after `torch.manual_seed(11)`: numbers
of the Mersenne Twister, uniform within ±1/√fan-in, drawn in the order of the modules. NumPy's `RandomState` gives the
same stream in every version. The few tensors that are not drawn (mean shifts, norms) are stored.
"""

import hashlib
import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

PARITY_FIXTURES = Path(__file__).parent / "fixtures" / "parity"
SYSTEMS = ("sronet", "liif", "lte", "lte-fast", "metasr")
SEED = 11
DRAWS_BEFORE_THE_HEAD = 24
"""Two mean shifts of 3×3 weights and 3 biases are initialised like any convolution and then overwritten."""


def rebuild(system: str) -> dict[str, Any]:
    """The content of the public checkpoint of a system, as `torch.load` gives it."""
    described = json.loads((PARITY_FIXTURES / "checkpoints.json").read_text())[system]
    state = _draw(described["tensors"])
    digest = state_digest(state)
    if digest != described["sha256"]:
        raise RuntimeError(f"the rebuilt weights of {system} have digest {digest}, and not {described['sha256']}")
    return {"model": {"name": system, "args": described["args"], "sd": OrderedDict(state)}, "optimizer": {}, "epoch": 1}


def state_digest(state: dict[str, Tensor]) -> str:
    """SHA-256 over names, shapes and values, in order."""
    digest = hashlib.sha256()
    for name, tensor in state.items():
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().astype("<f4").tobytes())
    return digest.hexdigest()


def _draw(shapes: dict[str, list[int]]) -> dict[str, Tensor]:
    stored = np.load(PARITY_FIXTURES / "stored.npz")
    stream = np.random.RandomState(SEED)
    _uniform(stream, DRAWS_BEFORE_THE_HEAD, 1)
    state: dict[str, Tensor] = {}
    for name, shape in shapes.items():
        if name in stored:
            values = stored[name]
        else:
            fan_in = np.prod(shapes[name.removesuffix("bias").removesuffix("weight") + "weight"][1:])
            values = _uniform(stream, int(np.prod(shape)), 1 / np.sqrt(fan_in)).reshape(shape)
        state[name] = torch.from_numpy(values)
    return state


def _uniform(stream: np.random.RandomState, count: int, bound: float) -> NDArray[np.float32]:
    """`Tensor.uniform_(-bound, bound)`: 24 bits of each draw, one rounding at the end."""
    bits = stream.randint(0, 2**32, size=count, dtype=np.uint32) & 0xFFFFFF
    width = np.float64(np.float32(2 * bound))
    return (bits * 2.0**-24 * width - np.float32(bound)).astype(np.float32)
