"""Mistakes that a user can mend: one line that names what to change, and exit code 2 on the command line."""

import importlib
from types import ModuleType


class SRNOError(ValueError):
    """A user's mistake: the message says what was given and what would work."""

    def __str__(self) -> str:
        """One line, whatever names from files are quoted in it."""
        return " ".join(super().__str__().splitlines())


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, which comes with the optional extra `extra`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        name = (missing.name or module).partition(".")[0]
        raise SRNOError(f"{name} is not installed; get it with: pip install 'srno[{extra}]'") from None
