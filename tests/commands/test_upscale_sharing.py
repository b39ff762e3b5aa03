"""srno upscale: several processes on one folder."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from upscale_runs import call, spawn

from imaging.making import noise, png
from srno.files import claimed
from tiny_models import write_tiny

PICTURES = 12


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_tiny(tmp_path / "tiny.safetensors")
    (tmp_path / "in").mkdir()
    for number in range(PICTURES):
        (tmp_path / "in" / f"{number:02}.png").write_bytes(png(noise(24, 32, 3, seed=number)))
    return tmp_path


def start(here: Path, *tokens: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "srno", "upscale", "in", "-o", "out", "-m", "tiny.safetensors", "--json", *tokens]
    command += ["--precision", "fp32"]  # without timing the machine, which takes long on a busy one
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=here, env=environment, stdout=subprocess.PIPE, text=True)


def test_four_processes_share_a_folder(here: Path):
    processes = [start(here, "--skip-existing") for _ in range(4)]
    try:
        outcomes = [json.loads(line) for process in processes for line in process.communicate()[0].splitlines()]
    finally:
        for process in processes:
            process.kill()  # if the test has run out of time
    assert [process.returncode for process in processes] == [0] * 4
    written = [outcome["output"] for outcome in outcomes if outcome["status"] == "written"]
    assert sorted(written) == [f"out/{number:02}.png" for number in range(PICTURES)]  # each exactly once
    assert {outcome["status"] for outcome in outcomes} <= {"written", "skipped"}
    assert sorted(path.name for path in (here / "out").iterdir()) == [f"{number:02}.png" for number in range(PICTURES)]


def test_the_work_of_a_killed_process_is_done_by_the_next(here: Path):
    process = start(here, "--skip-existing")
    assert process.stdout is not None
    process.stdout.readline()  # one is written
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = spawn("in", "-o", "out", "-m", "tiny.safetensors", "--skip-existing", cwd=here)
    assert done.returncode == 0
    assert sorted(path.name for path in (here / "out").iterdir()) == [f"{number:02}.png" for number in range(PICTURES)]


def test_a_picture_claimed_by_another_process_is_skipped(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "out").mkdir()
    with claimed(here / "out" / "00.png"):
        code, out, _ = call(capsys, "in", "-o", "out", "-m", "tiny.safetensors", "--json")
    first, *others = map(json.loads, out.splitlines())
    assert code == 0
    assert (first["status"], first["reason"]) == ("skipped", "another process works on it")
    assert {other["status"] for other in others} == {"written"}
