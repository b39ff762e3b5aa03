"""Checkpoints and the files of runs: valid and hostile ones to start from, and the readers."""

import io
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

from srno.errors import SRNOError

MARKER = Path("executed")
"""A file that hostile checkpoints try to create."""


def read_model(suffix: str, data: bytes) -> None:
    """Load a checkpoint from a file."""
    from srno.checkpoints.catalogue import load

    path = Path(f"model{suffix}")
    path.write_bytes(data)
    try:
        load(path)
    finally:
        path.unlink()


class Payload:
    """Creates a file when it is unpickled without care."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {MARKER}",)


def native_models() -> list[bytes]:
    from tiny_models import write_tiny

    return [write_tiny(Path("tiny.safetensors")).read_bytes()]


def public_models() -> list[bytes]:
    import torch

    from checkpoints.public_layout import public_content
    from small_models import CONFIGS, random_model

    valid = public_content(random_model(CONFIGS["edsr"], dtype=torch.float32))
    hostile = valid | {"optimizer": Payload()}
    out = [pickle.dumps(hostile), pickle.dumps(Payload())]
    for content in (valid, hostile):
        for zipped in (True, False):
            stream = io.BytesIO()
            torch.save(content, stream, _use_new_zipfile_serialization=zipped)
            out.append(stream.getvalue())
    return out


def read_run(data: bytes) -> None:
    """Read config, log and state of a run, all with this content."""
    from srno.training.run import Run

    folder = Path("run")
    (folder / "state").mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "log.jsonl", "state/000000001.pt"):
        (folder / name).write_bytes(data)
    run = Run(folder)
    for step in (run.config, run.read_log, run.load_state, lambda: run.finished(1)):
        try:
            step()
        except SRNOError:
            continue


def run_files() -> list[bytes]:
    from srno.training.config import TrainConfig
    from srno.training.run import to_json

    config = to_json(TrainConfig(data=(Path("pictures"),), steps=2, stages="8x2x16"))
    log = [{"event": "step", "step": 1, "loss": 0.5}, {"event": "resume", "step": 1}, {"event": "done", "step": 2}]
    return [
        config.encode(),
        "\n".join(map(json.dumps, log)).encode(),
        pickle.dumps({"step": 1}),
        pickle.dumps(Payload()),
    ]
