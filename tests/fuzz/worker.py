"""Give inputs of one kind to its reader, in a process with limits; report each one that it does not refuse properly.

python -m fuzz.worker KIND SEED FIRST COUNT
"""

import faulthandler
import json
import os
import resource
import signal
import sys
import traceback

import numpy as np

from fuzz.kinds import KINDS, Kind
from fuzz.models import MARKER
from fuzz.mutations import mutate
from srno.errors import SRNOError

MEMORY = 2 << 30
"""Bytes of address space that an input may add to what the imported program has."""
SECONDS = 20
"""Processor time of one input after which it counts as endless."""
WALL_SECONDS = 300
"""Time of one input after which it counts as stuck: it waits without using the processor."""
GRAMMAR_SHARE = 0.3


def make_input(kind: Kind, seeds: list[bytes], seed: int, number: int) -> bytes:
    """Input `number`, a function of the seed and the number."""
    rng = np.random.default_rng((seed, number))
    if rng.random() < GRAMMAR_SHARE:
        data = kind.make(rng)
        return data if rng.random() < 0.5 else mutate(data, seeds[0], rng)
    one, other = (seeds[int(rng.integers(len(seeds)))] for _ in range(2))
    return mutate(one, other, rng)


def main(name: str, seed: int, first: int, count: int) -> None:
    """Print a line of JSON for each input before and after it: its number, and what became of it."""
    kind = KINDS[name]
    seeds = kind.seeds()
    _limit_memory()
    for data in seeds:
        _attempt(kind, data)  # also loads what is imported late
    present = set(os.listdir())  # noqa: PTH208
    for number in range(first, first + count):
        _say({"number": number})
        data = make_input(kind, seeds, seed, number)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        faulthandler.dump_traceback_later(WALL_SECONDS, exit=True)
        result = _attempt(kind, data)
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        if MARKER.exists():
            MARKER.unlink()
            result = "executed code"
        if left := set(os.listdir()) - present:  # noqa: PTH208
            result = f"files left behind: {', '.join(sorted(left))}"
            present |= left
        _say({"number": number, "result": result})


def _say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


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
