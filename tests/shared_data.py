"""Where the benchmark sets and other data that the repository does not hold are found."""

from pathlib import Path

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"
BENCHMARK_SETS = SHARED_DATA / "eval"
