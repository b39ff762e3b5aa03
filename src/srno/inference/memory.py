"""How much memory there is, and how users write amounts of it."""

import os
import re
from pathlib import Path

import torch

from srno.errors import SRNOError

SHARE = 0.5
"""Part of the free memory that a render may plan with unless told otherwise."""
FALLBACK = 2 << 30
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_memory(text: str | int) -> int:
    """`2G`, `512M` or a number of bytes → bytes."""
    if isinstance(text, int):
        amount = float(text)
    else:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
        if not match:
            raise SRNOError(f"memory {text!r}: write an amount such as 2G or 512M")
        amount = float(match[1]) * UNITS[match[2].upper()]
    if amount < 1 << 20:
        raise SRNOError(f"memory {text!r}: less than 1M is not enough for anything")
    return int(amount)


def default_budget(device: torch.device) -> int:
    """A sensible share of what the device has free now."""
    if device.type == "cuda":
        return int(SHARE * torch.cuda.mem_get_info(device)[0])
    return int(SHARE * free_memory())


def free_memory() -> int:
    """Bytes that can be had without swapping, within the limits of a container."""
    free = _linux_available() or _physical() // 2 or FALLBACK
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
    """The number in a file of the control group, None for `max` or no such file."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None
