"""Where to compute."""

import torch

from srno.errors import SRNOError

DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str) -> torch.device:
    """The device of a name; `auto` is a GPU where there is one."""
    found = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if found[kind]))
    kind = name.partition(":")[0]
    if kind not in found:
        raise SRNOError(f"device {name!r}: choose {', '.join(DEVICES)}")
    if not found[kind]:
        here = ", ".join(kind for kind, there in found.items() if there)
        raise SRNOError(f"device {name!r} is not there; this machine has: {here}")
    return torch.device(name)
