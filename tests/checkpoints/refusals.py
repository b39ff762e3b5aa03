"""Errors for files that are not checkpoints."""

from pathlib import Path

import pytest

from srno.checkpoints.catalogue import read_checkpoint
from srno.errors import SRNOError


def refusal_of(path: Path) -> str:
    """Return the message with which a file is refused: one line that starts with its path."""
    with pytest.raises(SRNOError) as refusal:
        read_checkpoint(path)
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message
