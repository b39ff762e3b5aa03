"""Fuzz what reads files and requests of others, and count what must not happen.

make fuzz
PYTHONPATH=src:tests python -m fuzz --count 1000 --seed 1 png jpeg
"""

import argparse
import sys

from fuzz.kinds import KINDS
from fuzz.running import Result, fuzz


def main() -> None:
    """Print one line per kind; the exit code is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description="Fuzz the readers of files and requests.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all unless given")
    parser.add_argument("--count", type=int, default=10_000, help="inputs per kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    unknown = set(options.kinds) - KINDS.keys()
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(KINDS)}")
    bad = False
    for name in options.kinds or KINDS:
        result = fuzz(name, seed=options.seed, count=options.count)
        bad |= bool(result.problems)
        sys.stdout.write(describe(name, result) + "\n")
        sys.stdout.flush()
    sys.exit(bad)


def describe(name: str, result: Result) -> str:
    """Counts, and the first problems with the numbers of their inputs."""
    line = f"{name}: {result.inputs} inputs, {result.accepted} accepted, {result.refused} refused, "
    line += f"{len(result.problems)} problems"
    shown = [f"  input {number}: {problem}" for number, problem in list(result.problems.items())[:5]]
    return "\n".join([line, *shown])


if __name__ == "__main__":
    main()
