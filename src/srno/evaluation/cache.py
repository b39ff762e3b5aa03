"""Scores that are already known, one small JSON file each, so that a stopped evaluation goes on where it was."""

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from srno.errors import SRNOError
from srno.evaluation.metrics import Score
from srno.evaluation.protocols import Protocol, Scale

METRICS_VERSION = 1
"""Raised whenever the arithmetic of the scores changes, which makes all older entries unknown."""


@dataclass(frozen=True)
class Entry:
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

    def get(self, picture: str, scale: Scale, protocol: Protocol) -> Entry | None:
        """The known entry, or None; a damaged file counts as unknown."""
        try:
            stored = json.loads(self.path(picture, scale, protocol).read_text())
            return Entry(Score(float(stored["psnr"]), float(stored["ssim"])), float(stored["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, picture: str, scale: Scale, protocol: Protocol, entry: Entry) -> None:
        """Store an entry; the file appears whole or not at all."""
        path = self.path(picture, scale, protocol)
        # JSON has no infinity, while float() reads the word back.
        values = {key: str(value) for key, value in asdict(entry.score).items()}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
            with os.fdopen(descriptor, "w") as file:
                json.dump(values | {"seconds": entry.seconds}, file)
            Path(temporary).replace(path)
        except OSError as error:
            raise SRNOError(f"the cache folder {self.folder} cannot be written: {error.strerror}") from None


def default_cache_folder() -> Path:
    """Where scores are kept unless told otherwise: $XDG_CACHE_HOME/srno/evaluation, or the same under ~/.cache."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "srno" / "evaluation"
