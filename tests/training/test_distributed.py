"""Several processes as one, really started by torchrun."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from srno.checkpoints.native import read_native
from srno.errors import SRNOError
from srno.training.distributed import World
from srno.training.feed import open_pictures
from srno.training.run import Run
from training.small_runs import make_pictures, small_config

FLAGS = (
    "--stages", "8x4x32", "--hold-out", "0", "--precision", "fp32", "--device", "cpu", "--warmup", "0",
    "--constant", "1", "--optimiser", "adam", "--accumulate", "2", "--ema", "none",
)  # fmt: skip
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m")


def srno(place: Path, *tokens: str | Path, together: bool) -> subprocess.CompletedProcess[str]:
    start = (*TORCHRUN, "srno") if together else ("-m", "srno")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(place / "cache")}
    command = [sys.executable, *start, "train", *map(str, tokens)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate()
    finally:
        process.terminate()  # torchrun then ends the others, if it is still there
        process.wait()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def weights(run: Path) -> torch.Tensor:
    state = read_native(run / "last.safetensors").state
    return torch.cat([state[name].flatten() for name in sorted(state)])


def change(run: Path) -> torch.Tensor:
    """What training did to the weights."""
    first = torch.load(next(path for path in Run(run).states() if int(path.stem) == 0), weights_only=True)["model"]
    return weights(run) - torch.cat([first[name].flatten() for name in sorted(first)])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distributed")
    make_pictures(folder / "pictures")
    return folder


def test_two_processes_are_one_with_twice_the_batch(place: Path):
    """Adam and accumulation, so that every gradient counts to its last digit and some are held back."""
    one = srno(place, "--data", place / "pictures", "--out", place / "one", *FLAGS, "--steps", "4", together=False)
    assert one.returncode == 0, one.stderr
    two = srno(place, "--data", place / "pictures", "--out", place / "two", *FLAGS, "--steps", "4", together=True)
    assert two.returncode == 0, two.stderr
    expected, moved = change(place / "one"), change(place / "two")
    assert expected.abs().max() > 1e-3
    assert (moved - expected).norm() < 1e-3 * expected.norm()
    assert two.stderr.count("done after 4 steps") == 1  # one process speaks
    logs = [[entry["loss"] for entry in Run(place / name).read_log() if "loss" in entry] for name in ("one", "two")]
    assert logs[0] == pytest.approx(logs[1], rel=1e-4)

    # what two processes began, two go on with; the main one reads the state for both
    half = srno(place, "--data", place / "pictures", "--out", place / "half", *FLAGS, "--steps", "2", together=True)
    assert half.returncode == 0, half.stderr
    longer = srno(place, "--resume", place / "half", "--steps", "4", "--device", "cpu", together=True)
    assert longer.returncode == 0, longer.stderr
    assert torch.equal(weights(place / "half"), weights(place / "two"))


def test_a_mistake_ends_all_processes_and_is_said_once(place: Path):
    done = srno(place, "--data", place / "nowhere", "--out", place / "x", *FLAGS, "--steps", "4", together=True)
    assert done.returncode != 0
    assert done.stderr.count("nowhere is not a folder") == 1
    assert not (place / "x").exists()


def test_a_batch_that_cannot_be_shared_is_refused(pictures: Path):
    config = small_config(pictures, steps=1, stages="8x3x32")
    with pytest.raises(SRNOError, match="batch 3 cannot be shared by 2 processes"):
        open_pictures(config, World(0, 2, torch.device("cpu")), lambda *_: None)
