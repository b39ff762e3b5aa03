"""Checkpoints as written by the public code of SRNO and its rivals, read without running code from them.

The usual form is {'model': {'name', 'args', 'sd'}, …}; the original EDSR files contain only a state dict.
"""

import pickle
import warnings
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from srno.checkpoints.native import Card, Checkpoint, check_state
from srno.checkpoints.renaming import MissingError, Renamer, State
from srno.checkpoints.systems import SYSTEMS
from srno.errors import SRNOError

REQUIRED_SWITCHES = ("local_ensemble", "feat_unfold", "cell_decode")
"""Arguments of LIIF that the tensors do not show, or only in a shape; files with `False` are refused."""


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
