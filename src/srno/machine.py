"""Devices, arithmetic and memory of this machine. torch is imported only when a device is requested."""

import ctypes
import hashlib
import json
import os
import platform
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from srno.errors import SRNOError
from srno.files import cache_folder, write_atomically

if TYPE_CHECKING:
    import torch

ProductPrecision: TypeAlias = Literal["fp32", "bf16", "fp16"]

MALLOC_SETTINGS = {-4: 0, -1: 2**31 - 1, -2: 64 << 20}
"""glibc's M_MMAP_MAX, M_TRIM_THRESHOLD and M_TOP_PAD: no block is mapped on its own, and the heap does not shrink."""
SPIN_COUNT = 1000
"""Turns for which a waiting thread spins, some tens of microseconds: about as long as waking it up takes."""
DEVICES = ("auto", "cpu", "cuda", "mps")
MIN_BF16_SPEED_UP = 1.3
"""Speed of bf16 products relative to fp32 from which bf16 is used on a CPU."""
PROBE_SIDE = 1024
"""Rows and columns of the matrices whose product is timed."""
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


def fastest_precision(device: "torch.device") -> ProductPrecision:
    """Return the precision in which products are fastest: half precision if it pays, fp32 otherwise.

    A CPU is timed once, and the result is cached: hardware without bf16 emulates it slowly. GPUs are decided by their
    generation (NVIDIA's tensor cores multiply bf16 since compute capability 8.0 and fp16 since 7.0); others take fp32.
    """
    if device.type == "cuda":
        import torch

        generation = torch.cuda.get_device_capability(device)[0]
        return "bf16" if generation >= 8 else "fp16" if generation == 7 else "fp32"
    return _cpu_precision() if device.type == "cpu" else "fp32"


def _cpu_precision() -> ProductPrecision:
    import torch

    key = hashlib.sha256(f"{_cpu_name()} {torch.__version__}".encode()).hexdigest()[:16]
    path = cache_folder("machine") / f"{key}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(path.read_text())["precision"]
        if known in ("fp32", "bf16"):
            return cast(ProductPrecision, known)
    speed_up = _product_seconds(torch.float32) / _product_seconds(torch.bfloat16)
    found: ProductPrecision = "bf16" if speed_up > MIN_BF16_SPEED_UP else "fp32"
    with suppress(OSError):  # without a cache it is timed again
        write_atomically(path, json.dumps({"precision": found, "speed_up": round(speed_up, 2)}).encode())
    return found


def _product_seconds(dtype: "torch.dtype") -> float:
    """Least seconds of a few matrix products."""
    import torch

    matrix = torch.ones(PROBE_SIDE, PROBE_SIDE, dtype=dtype)
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        torch.mm(matrix, matrix)
        times.append(time.perf_counter() - start)
    return min(times)


def _cpu_name() -> str:
    with suppress(OSError):
        match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        flags = re.search(r"flags\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        return f"{match[1] if match else ''} {'avx512_bf16' in (flags[1] if flags else '')}"
    return platform.processor()


def parse_memory(text: str | int) -> int:
    """`2G`, `512M` or a number of bytes → bytes."""
    if isinstance(text, bool) or not isinstance(text, str | int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SRNOError(f"memory {text!r}: give an amount such as '2G', or a number of bytes")
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


def describe_bytes(count: int) -> str:
    """Bytes as people read them: `2.46 GB`, `0.3 MB`."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


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


def keep_freed_memory() -> bool:
    """Make glibc keep freed blocks instead of returning each to the system; returns whether it does.

    By default every array of some megabytes is mapped afresh, and the system fills its pages with zeros first: a
    quarter of an encoder's time on a CPU. The setting is one of the whole process, so commands use it and the library
    does not.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return mallopt is not None and all(mallopt(number, value) for number, value in MALLOC_SETTINGS.items())


def release_memory() -> None:
    """Return freed memory to the system; the C library would keep it for later."""
    with suppress(OSError, AttributeError):  # other C libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


def wait_briefly() -> None:
    """Make threads of OpenMP that wait for others sleep soon; a setting of the user's environment stays.

    By default they spin for milliseconds. On a busy machine that is time which the thread they wait for does not get.
    OpenMP reads the setting when torch is imported. It is one of the whole process, so commands use it and the library
    does not.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = str(SPIN_COUNT)
        os.environ["KMP_BLOCKTIME"] = "0"
