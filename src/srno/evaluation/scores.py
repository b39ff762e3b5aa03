"""Scores that are already known, one small JSON file each, so that a stopped evaluation resumes where it was."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from srno.errors import SRNOError
from srno.evaluation.metrics import Score
from srno.evaluation.protocols import Protocol, Scale
from srno.files import write_atomically

METRICS_VERSION = 1
"""Raised whenever the arithmetic of the scores changes, which makes all older entries unknown."""


@dataclass(frozen=True)
class TimedScore:
    """A score and the time that the upscaling took when it was measured."""

    score: Score
    seconds: float


@dataclass(frozen=True)
class ScoreCache:
    """A folder of entries for one model. `weights` is a hash of all that decides its output, options included."""

    weights: str
    folder: Path

    def path(self, picture: str, scale: Scale, protocol: Protocol) -> Path:
        """The file for a picture's content hash; the protocol counts by what it does, not by its name."""
        rules = {key: value for key, value in protocol.to_dict().items() if key not in ("name", "description")}
        key = json.dumps([METRICS_VERSION, self.weights, picture, str(scale), rules])
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.json"

    def get(self, picture: str, scale: Scale, protocol: Protocol) -> TimedScore | None:
        """The known entry, or None; a damaged file counts as unknown."""
        try:
            stored = json.loads(self.path(picture, scale, protocol).read_text())
            return TimedScore(Score(float(stored["psnr"]), float(stored["ssim"])), float(stored["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, picture: str, scale: Scale, protocol: Protocol, entry: TimedScore) -> None:
        """Store an entry; the file appears whole or not at all."""
        path = self.path(picture, scale, protocol)
        # JSON has no infinity, while float() reads the word back.
        values = {key: str(value) for key, value in asdict(entry.score).items()}
        try:
            write_atomically(path, json.dumps(values | {"seconds": entry.seconds}).encode())
        except OSError as error:
            raise SRNOError(f"the cache folder {self.folder} cannot be written: {error.strerror}") from None
