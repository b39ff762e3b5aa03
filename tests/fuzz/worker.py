"""Give inputs of one kind to its reader, in a process with limits; report each one that it does not refuse properly.

python -m fuzz.worker KIND SEED FIRST COUNT
"""

import json
import os
import resource
import signal
import sys
import traceback

import numpy as np

from fuzz.kinds import KINDS, MARKER, Kind
from fuzz.mutations import mutate
from srno.errors import SRNOError

MEMORY = 2 << 30
"""Bytes of address space that an input may add to what the imported program has."""
SECONDS = 20
"""Processor time of one input after which it counts as endless."""
GRAMMAR_SHARE = 0.3


def make_input(kind: Kind, seeds: list[bytes], seed: int, number: int) -> bytes:
    """Input `number`, a function of the seed and the number."""
    rng = np.random.default_rng((seed, number))
    if kind.make is not None and rng.random() < GRAMMAR_SHARE:
        data = kind.make(rng)
        return data if rng.random() < 0.5 else mutate(data, seeds[0], rng)
    one, other = (seeds[int(rng.integers(len(seeds)))] for _ in range(2))
    return mutate(one, other, rng)


def main(name: str, seed: int, first: int, count: int) -> None:
    """Print the number before each input, and a line of JSON for each that ends badly."""
    kind = KINDS[name]
    seeds = kind.seeds()
    _limit_memory()
    for data in seeds:
        _attempt(kind, data)  # also loads what is imported late
    present = set(os.listdir())  # noqa: PTH208
    counts = {"accepted": 0, "refused": 0}
    for number in range(first, first + count):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        result = _attempt(kind, make_input(kind, seeds, seed, number))
        signal.setitimer(signal.ITIMER_PROF, 0)
        if result in counts:
            counts[result] += 1
        else:
            sys.stdout.write(json.dumps({"number": number, "problem": result}) + "\n")
        if MARKER.exists():
            MARKER.unlink()
            sys.stdout.write(json.dumps({"number": number, "problem": "executed code"}) + "\n")
    left = set(os.listdir()) - present  # noqa: PTH208
    sys.stdout.write(json.dumps({"done": counts, "left": sorted(left)}) + "\n")


def _attempt(kind: Kind, data: bytes) -> str:
    """accepted, refused, or what went wrong."""
    try:
        kind.read(data)
    except SRNOError as error:
        return "refused" if "\n" not in str(error) else "refused in several lines"
    except MemoryError:
        return "memory"
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:100]} ({at.filename.rpartition('/')[2]}:{at.lineno})"
    return "accepted"


def _limit_memory() -> None:
    pages = int(open("/proc/self/statm").read().split()[0])  # noqa: PTH123, SIM115
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
