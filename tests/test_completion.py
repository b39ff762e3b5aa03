"""srno completion, in the shells themselves: words of the command, and names of files everywhere else."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from srno.cli import COMMANDS, main

STARTS = {
    # No files of the user's are read, and the prompt is known.
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SETUPS = {
    "bash": "source ./script",
    # As the help says: in a directory of $fpath, under the name _srno.
    "zsh": "mkdir -p found; cp script found/_srno; fpath=($PWD/found $fpath); autoload -U compinit; compinit -u -D",
}
TIMEOUT = 60.0

LINES = [
    ("srno ups", "upscale"),
    ("srno upscale --fram", "--frames"),
    ("srno completion fi", "fish"),
    ("srno upscale holi", "holiday.jpg"),
    ("srno upscale -o holi", "holiday.jpg"),
    ("srno holi", "holiday.jpg"),
]
"""What is typed before the tab key, and the word that appears."""


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A shell that is installed; its script and a picture are in the folder."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    with pytest.raises(SystemExit):
        main(["completion", request.param])
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "holiday.jpg").write_bytes(b"")
    return request.param


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_knows_every_command(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main(["completion", name])
    script = capsys.readouterr().out
    assert stop.value.code in (0, None)
    assert all(command in script for command in COMMANDS)


def test_words_and_files_are_completed(shell: str, tmp_path: Path):
    if shell == "fish":
        for typed, word in LINES:
            command = ["fish", "--no-config", "-c", f"source ./script; complete -C '{typed}'"]
            environment = os.environ | {"HOME": str(tmp_path)}
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
            assert word in done.stdout
        return
    with terminal(shell, tmp_path) as talk:
        # The command prints what it does not contain, so that its echo is not taken for its result.
        talk(f"{SETUPS[shell]}; echo is-''ready\n", "is-ready")
        for typed, word in LINES:
            talk(typed + "\t", word)
            talk("\x15echo do''ne\n", "done")  # Ctrl-U empties the line


@contextmanager
def terminal(shell: str, folder: Path) -> Generator:
    """An interactive shell; yields a function that types a text and waits for another."""
    pid, file = pty.fork()
    if pid == 0:  # the child
        os.chdir(folder)
        os.environ.update({"TERM": "dumb", "PS1": "> ", "HOME": str(folder)})
        os.execvp(shell, STARTS[shell])

    def talk(text: str, expected: str) -> None:
        os.write(file, text.encode())
        seen, end = "", time.monotonic() + TIMEOUT
        while expected not in seen:
            ready, _, _ = select.select([file], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"after {text!r} there is no {expected!r} in {seen!r}"
            # Without the codes that move the cursor and the bell.
            seen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x07", "", seen + os.read(file, 4096).decode(errors="replace"))

    try:
        yield talk
    finally:
        os.close(file)  # the shell ends with its terminal
        os.waitpid(pid, 0)
