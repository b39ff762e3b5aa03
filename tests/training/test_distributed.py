"""Distributed training with real processes under torchrun."""

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


def srno(workspace: Path, *tokens: str | Path, torchrun: bool) -> subprocess.CompletedProcess[str]:
    start = (*TORCHRUN, "srno") if torchrun else ("-m", "srno")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(workspace / "cache")}
    command = [sys.executable, *start, "train", *map(str, tokens)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate()
    finally:
        process.terminate()  # if torchrun is still running, it then ends its processes
        process.wait()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def weights(run: Path) -> torch.Tensor:
    state = read_native(run / "last.safetensors").state
    return torch.cat([state[name].flatten() for name in sorted(state)])


def change(run: Path) -> torch.Tensor:
    """Difference of the weights to those before the first step."""
    first = torch.load(next(path for path in Run(run).states() if int(path.stem) == 0), weights_only=True)["model"]
    return weights(run) - torch.cat([first[name].flatten() for name in sorted(first)])


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distributed")
    make_pictures(folder / "pictures")
    return folder


def test_two_processes_train_like_one_with_twice_the_batch(workspace: Path):
    """With Adam, which is sensitive to small gradients, and accumulation, which skips some synchronisations."""
    one = srno(
        workspace, "--data", workspace / "pictures", "--out", workspace / "one", *FLAGS, "--steps", "4", torchrun=False
    )
    assert one.returncode == 0, one.stderr
    two = srno(
        workspace, "--data", workspace / "pictures", "--out", workspace / "two", *FLAGS, "--steps", "4", torchrun=True
    )
    assert two.returncode == 0, two.stderr
    expected, actual = change(workspace / "one"), change(workspace / "two")
    assert expected.abs().max() > 1e-3
    assert (actual - expected).norm() < 1e-3 * expected.norm()
    assert two.stderr.count("done after 4 steps") == 1  # only the main process prints
    logs = [[entry["loss"] for entry in Run(workspace / name).read_log() if "loss" in entry] for name in ("one", "two")]
    assert logs[0] == pytest.approx(logs[1], rel=1e-4)

    # a run of two processes resumes with two processes; the main one reads the state for both
    half = srno(
        workspace, "--data", workspace / "pictures", "--out", workspace / "half", *FLAGS, "--steps", "2", torchrun=True
    )
    assert half.returncode == 0, half.stderr
    longer = srno(workspace, "--resume", workspace / "half", "--steps", "4", "--device", "cpu", torchrun=True)
    assert longer.returncode == 0, longer.stderr
    assert torch.equal(weights(workspace / "half"), weights(workspace / "two"))


def test_a_wrong_folder_ends_all_processes_with_one_message(workspace: Path):
    done = srno(
        workspace, "--data", workspace / "nowhere", "--out", workspace / "x", *FLAGS, "--steps", "4", torchrun=True
    )
    assert done.returncode != 0
    assert done.stderr.count("nowhere is not a folder") == 1
    assert not (workspace / "x").exists()


def test_a_batch_that_the_processes_do_not_divide_is_refused(pictures: Path):
    config = small_config(pictures, steps=1, stages="8x3x32")
    with pytest.raises(SRNOError, match="batch 3 cannot be shared by 2 processes"):
        open_pictures(config, World(0, 2, torch.device("cpu")), lambda *_: None)


@pytest.mark.parametrize("way", ["library", "command"])
def test_two_processes_end_together(way: str):
    """Several times, since a late thread would end a process only now and then."""
    script = Path(__file__).with_name("end_processes.py")
    command = [sys.executable, str(script), "3", way]
    found = (str(script.parents[1]), os.environ.get("PYTHONPATH", ""))  # the helpers beside it
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(found)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "{'0': 6}\n"), done.stderr
