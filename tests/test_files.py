"""Atomic files, claims and leftovers, with processes that are killed."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from srno.files import claimed, remove_leftovers, replacing


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".*"))


@contextmanager
def child(code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has said `ready` after running some code, and is killed at the end."""
    program = f"import time\nfrom pathlib import Path\nfrom srno.files import *\n{code}"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_a_claim_excludes_other_processes_and_ends_with_its_process(tmp_path: Path):
    result = tmp_path / "cat.png"
    code = f"with claimed(Path({str(result)!r})) as free:\n    print('ready', flush=True)\n    time.sleep(600)"
    with child(code), claimed(result) as free:
        assert not free
    assert len(hidden(tmp_path)) == 1  # the process was killed
    with claimed(result) as free:
        assert free
    assert hidden(tmp_path) == []


def test_claims_of_other_results_are_independent(tmp_path: Path):
    names = [f"{'x' * 60}{end}" for end in ("a.png", "b.png")]
    with (
        claimed(tmp_path / names[0]) as one,
        claimed(tmp_path / names[1]) as other,
        claimed(tmp_path / names[0]) as again,
    ):
        assert (one, other, again) == (True, True, False)


def test_leftovers_of_killed_processes_are_removed_and_files_in_use_stay(tmp_path: Path):
    code = f"with replacing(Path({str(tmp_path / 'cat.png')!r})) as stream:\n"
    code += "    stream.write(b'half')\n    stream.flush()\n    print('ready', flush=True)\n    time.sleep(600)"
    (tmp_path / ".keep").write_bytes(b"of another program")
    with child(code):
        remove_leftovers(tmp_path)
        assert len(hidden(tmp_path)) == 2
    assert len(hidden(tmp_path)) == 2
    remove_leftovers(tmp_path)
    assert hidden(tmp_path) == [".keep"]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_has_appeared_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool):
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    path = tmp_path / "cat.png"
    with replacing(path, existing=False) as stream:
        stream.write(b"first")
    assert path.read_bytes() == b"first"
    with pytest.raises(FileExistsError), replacing(path, existing=False) as stream:
        stream.write(b"second")
    with replacing(path) as stream:
        stream.write(b"third")
    assert path.read_bytes() == b"third"
    assert os.listdir(tmp_path) == ["cat.png"]  # noqa: PTH208
