"""Devices and memory of this machine. torch is imported only when a device is requested."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from srno.errors import SRNOError

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda", "mps")
DEFAULT_BUDGET_SHARE = 0.5
"""Share of the free memory that a render uses by default."""
FALLBACK_MEMORY = 2 << 30
"""Bytes, if the system does not report its memory."""
MEMORY_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def choose_device(name: str) -> "torch.device":
    """Return the device of a name; `auto` is a GPU if there is one."""
    import torch

    found = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if found[kind]))
    kind = name.partition(":")[0]
    if kind not in found:
        raise SRNOError(f"device {name!r}: choose {', '.join(DEVICES)}")
    if not found[kind]:
        here = ", ".join(kind for kind, there in found.items() if there)
        raise SRNOError(f"device {name!r} is not available; this machine has: {here}")
    return torch.device(name)


def parse_memory(text: str | int) -> int:
    """`2G`, `512M` or a number of bytes → bytes."""
    if isinstance(text, int):
        amount = float(text)
    else:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
        if not match:
            raise SRNOError(f"memory {text!r}: write an amount such as 2G or 512M")
        amount = float(match[1]) * MEMORY_UNITS[match[2].upper()]
    if amount < 1 << 20:
        raise SRNOError(f"memory {text!r}: at least 1M is needed")
    return int(amount)


def default_budget(device: "torch.device") -> int:
    """Return the default share of the memory that the device has free now."""
    if device.type == "cuda":
        import torch

        return int(DEFAULT_BUDGET_SHARE * torch.cuda.mem_get_info(device)[0])
    return int(DEFAULT_BUDGET_SHARE * free_memory())


def free_memory() -> int:
    """Bytes available without swapping, within the limits of a container."""
    free = _linux_available() or _physical() // 2 or FALLBACK_MEMORY
    limit, used = _number("/sys/fs/cgroup/memory.max"), _number("/sys/fs/cgroup/memory.current")
    return min(free, max(limit - used, 0)) if limit is not None and used is not None else free


def _linux_available() -> int:
    try:
        match = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        return 0
    return 1024 * int(match[1]) if match else 0


def _physical() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0


def _number(path: str) -> int | None:
    """Read the number in a file of the control group; None for `max` or if there is no such file."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception reports that the system or the device is out of memory."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)
