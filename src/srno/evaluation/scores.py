"""Cache of scores, one small JSON file each, so that a stopped evaluation resumes."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from srno.errors import SRNOError
from srno.evaluation.metrics import Score
from srno.evaluation.protocols import Protocol, Scale
from srno.files import write_atomically

METRICS_VERSION = 1
"""Incremented whenever the arithmetic of the scores changes, which invalidates all older entries."""


@dataclass(frozen=True)
class TimedScore:
    """A score and the time that the upscaling took when it was measured."""

    score: Score
    seconds: float


@dataclass(frozen=True)
class ScoreCache:
    """A folder of entries for one model. `weights` hashes everything that affects its output, options included."""

    weights: str
    folder: Path

    def path(self, picture: str, scale: Scale, protocol: Protocol) -> Path:
        """The file of an entry, by the picture's content hash; the protocol enters by its rules, not by its name."""
        rules = {key: value for key, value in protocol.to_dict().items() if key not in ("name", "description")}
        key = json.dumps([METRICS_VERSION, self.weights, picture, str(scale), rules])
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.json"

    def get(self, picture: str, scale: Scale, protocol: Protocol) -> TimedScore | None:
        """Read an entry; None if it is missing or damaged."""
        try:
            stored = json.loads(self.path(picture, scale, protocol).read_text())
            return TimedScore(Score(float(stored["psnr"]), float(stored["ssim"])), float(stored["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, picture: str, scale: Scale, protocol: Protocol, entry: TimedScore) -> None:
        """Store an entry atomically."""
        path = self.path(picture, scale, protocol)
        # JSON has no infinity, but float() parses the string.
        values = {key: str(value) for key, value in asdict(entry.score).items()}
        try:
            write_atomically(path, json.dumps(values | {"seconds": entry.seconds}).encode())
        except OSError as error:
            raise SRNOError(f"the cache folder {self.folder} cannot be written: {error.strerror}") from None
