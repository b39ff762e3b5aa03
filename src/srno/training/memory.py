"""Memory that a step frees is the memory that the next one needs."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of the two settings in glibc's malloc.h."""
LARGEST_BLOCK = 32 << 20
"""The most that glibc takes for the second."""


def keep_freed_memory() -> bool:
    """Ask glibc to keep freed blocks instead of giving each back to the system; returns whether it does.

    By default, arrays of some megabytes are mapped anew in every step, and the system fills every page with zeros
    before it is written: a tenth of a training step on a CPU goes there.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_BLOCK)) and bool(mallopt(M_TRIM_THRESHOLD, 2**31 - 1))
