"""The files of a run: config, states, weights and log."""

import io
import json
import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from srno.checkpoints.native import Card, Checkpoint, write_checkpoint
from srno.config import ModelConfig
from srno.errors import SRNOError
from srno.files import locked, remove_leftovers, write_atomically
from srno.training.config import TrainConfig

KEPT_STATES = 2
"""Saved states that are kept: the newest, and one more in case it is damaged or diverges."""


@dataclass(frozen=True)
class Run:
    """A run's folder."""

    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "log.jsonl"

    def check_new(self) -> None:
        """Refuse a path that is not a folder, or a folder that already holds a run."""
        if self.folder.exists() and not self.folder.is_dir():
            raise SRNOError(f"--out {self.folder} is a file; give a folder, which need not exist yet")
        if (self.folder / "config.json").exists():
            raise SRNOError(
                f"{self.folder} holds a run already; continue it with --resume {self.folder}, or choose another --out"
            )

    @contextmanager
    def opened(self) -> Generator[None]:
        """Lock the folder for this process, and remove partial files of a killed one."""
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ".lock").touch()
        with locked(self.folder / ".lock", wait=False) as free:
            if not free:
                raise SRNOError(f"{self.folder}: another process is training this run")
            remove_leftovers(self.folder)
            remove_leftovers(self.folder / "state")
            if self.log.exists() and not self.log.read_bytes().endswith(b"\n"):
                with self.log.open("a") as file:
                    file.write("\n")
            yield

    def config(self) -> TrainConfig:
        """Read the config of the run."""
        try:
            return from_json((self.folder / "config.json").read_text())
        except (OSError, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise SRNOError(f"--resume {self.folder}: no run there that can be resumed ({error})") from None

    def save_config(self, config: TrainConfig) -> None:
        """Write the config of the run."""
        with self._writing():
            write_atomically(self.folder / "config.json", to_json(config).encode())

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Turn an error of writing into an `SRNOError`."""
        try:
            yield
        except OSError as error:
            raise SRNOError(f"cannot write into {self.folder}: {error.strerror or error}") from None

    def states(self) -> list[Path]:
        """Saved states, newest first."""
        found = [path for path in (self.folder / "state").glob("*.pt") if re.fullmatch(r"\d+", path.stem)]
        return sorted(found, key=lambda path: int(path.stem), reverse=True)

    def save_state(self, state: dict[str, Any]) -> None:
        """Add a state, then remove the oldest and those of later steps, which a rollback has discarded."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_atomically(self.folder / "state" / f"{state['step']:09d}.pt", buffer.getvalue())
        reached = [path for path in self.states() if int(path.stem) <= state["step"]]
        for path in set(self.states()) - set(reached[:KEPT_STATES]):
            path.unlink(missing_ok=True)

    def load_state(self, *, before: int | None = None) -> dict[str, Any] | None:
        """Load the newest readable state, if possible one from before step `before`.

        A state of the step at which the loss explodes may hold the weights that cause it.
        """
        states = self.states()
        earlier = [path for path in states if before is None or int(path.stem) < before]
        for path in earlier or states[-1:]:
            try:
                return torch.load(path, map_location="cpu", weights_only=True)
            except Exception:
                continue  # damaged: try the older one
        return None

    def finished(self, step: int) -> bool:
        """Whether the run has used up its budget at this step and has recorded its end."""
        return any(entry.get("event") == "done" and entry.get("step") == step for entry in self.read_log())

    def save_weights(self, which: str, config: ModelConfig, weights: dict[str, Tensor], card: Card) -> None:
        """Write `last` or `best` in our format."""
        write_checkpoint(Checkpoint(config=config, state=weights, card=card), self.folder / f"{which}.safetensors")

    def write_log(self, **entry: Any) -> None:
        """Append a line to the log; skipped if the disk is full."""
        with suppress(OSError), self.log.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def read_log(self) -> list[dict[str, Any]]:
        """Read the log without the entries that a crash or a rollback undid."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            raise SRNOError(f"{self.folder}: no log.jsonl of a training run there") from None
        entries: list[dict[str, Any]] = []
        for entry in filter(None, map(_log_entry, lines)):
            if entry.get("event") in ("resume", "rollback"):
                entries = [earlier for earlier in entries if earlier.get("step", 0) <= entry.get("step", 0)]
            entries.append(entry)
        return entries


def _log_entry(line: str) -> dict[str, Any] | None:
    """An entry of the log; None if a crash has cut it off or damaged it."""
    try:
        entry: Any = json.loads(line)
        return entry if isinstance(entry.get("step", 0), int | float) else None
    except (ValueError, AttributeError, RecursionError):
        return None


def to_json(config: TrainConfig) -> str:
    """The content of a run's config.json."""
    return json.dumps(asdict(config), default=str, indent=1)


def from_json(text: str) -> TrainConfig:
    """The inverse of `to_json`; fields of other versions are dropped, missing ones have their default."""
    known = {entry.name for entry in fields(TrainConfig)}
    raw: dict[str, Any] = {key: value for key, value in json.loads(text).items() if key in known}
    raw["data"] = tuple(Path(folder) for folder in raw["data"])
    for name in ("betas", "halve_at"):
        if name in raw:
            raw[name] = tuple(raw[name])
    for name in ("init", "init_encoder", "validation"):
        raw[name] = Path(raw[name]) if raw.get(name) else None
    return TrainConfig(**raw)
