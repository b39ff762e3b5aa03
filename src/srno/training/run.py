"""The files of a run: what it is, how to go on, what came out, what happened."""

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from srno.checkpoints.native import Card, Checkpoint, write_atomically, write_checkpoint
from srno.config import ModelConfig
from srno.errors import SRNOError
from srno.training.config import TrainConfig, from_json, to_json

KEPT = 2
"""States that are kept: the newest, and one more in case it is damaged."""


@dataclass(frozen=True)
class Run:
    """A run's folder."""

    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "log.jsonl"

    def create(self, config: TrainConfig) -> None:
        """Begin a run; a folder that holds one already is refused."""
        if (self.folder / "config.json").exists():
            raise SRNOError(
                f"{self.folder} holds a run already; go on with --resume {self.folder}, or choose another --out"
            )
        write_atomically(self.folder / "config.json", to_json(config).encode())

    def replace_config(self, config: TrainConfig) -> None:
        """Remember that the run goes on with another budget."""
        write_atomically(self.folder / "config.json", to_json(config).encode())

    def config(self) -> TrainConfig:
        """What the run was begun with."""
        try:
            return from_json((self.folder / "config.json").read_text())
        except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise SRNOError(f"--resume {self.folder}: no run there that could go on ({error})") from None

    def states(self) -> list[Path]:
        """Saved states, newest first."""
        found = [path for path in (self.folder / "state").glob("*.pt") if re.fullmatch(r"\d+", path.stem)]
        return sorted(found, key=lambda path: int(path.stem), reverse=True)

    def save_state(self, state: dict[str, Any]) -> None:
        """Add a state, and only then drop the oldest."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_atomically(self.folder / "state" / f"{state['step']:09d}.pt", buffer.getvalue())
        for path in self.states()[KEPT:]:
            path.unlink(missing_ok=True)

    def load_state(self) -> dict[str, Any] | None:
        """The newest state that can be read."""
        for path in self.states():
            try:
                return torch.load(path, map_location="cpu", weights_only=True)
            except Exception:
                continue  # a damaged file: the one before it is there for this
        return None

    def save_weights(self, which: str, config: ModelConfig, weights: dict[str, Tensor], card: Card) -> None:
        """Write `last` or `best` in our format."""
        write_checkpoint(Checkpoint(config=config, state=weights, card=card), self.folder / f"{which}.safetensors")

    def write_log(self, **entry: Any) -> None:
        """One line of the log."""
        with self.log.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def read_log(self) -> list[dict[str, Any]]:
        """The log as it counts: what a crash undid is left out."""
        entries: list[dict[str, Any]] = []
        try:
            lines = self.log.read_text().splitlines()
        except OSError:
            raise SRNOError(f"{self.folder}: no log.jsonl of a training run there") from None
        for line in lines:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off by a crash
            if entry.get("event") == "resume":
                entries = [earlier for earlier in entries if earlier.get("step", 0) <= entry["step"]]
            entries.append(entry)
        return entries
