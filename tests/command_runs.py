"""Commands as a user types them, run in this process."""

from pathlib import Path

import pytest

from srno.cli import main


def exit_code(*tokens: str | Path) -> int:
    """Run `srno TOKENS`."""
    try:
        main([str(token) for token in tokens])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def run(capsys: pytest.CaptureFixture[str], *tokens: str | Path) -> tuple[int, str, str]:
    """Run `srno TOKENS`: exit code, stdout, stderr."""
    code = exit_code(*tokens)
    out, err = capsys.readouterr()
    return code, out, err
