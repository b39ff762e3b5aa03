"""Errors that a user can fix: one line that names what to change, and exit code 2 on the command line.

And two checks that several packages share.
"""

import importlib
import operator
from collections.abc import Mapping, Set
from types import ModuleType
from typing import Any


class SRNOError(ValueError):
    """A user error: the message names the value that was given and what would work.

    >>> import srno
    >>> try:
    ...     srno.preset("heavy")
    ... except srno.SRNOError as error:
    ...     print(str(error).partition(";")[0])
    unknown preset 'heavy'
    """

    def __str__(self) -> str:
        """Return the message as one line; names quoted from files may contain line breaks."""
        return " ".join(super().__str__().splitlines())


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, which comes with the optional extra `extra`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        name = (missing.name or module).partition(".")[0]
        raise SRNOError(f"{name} is not installed; install it with: pip install 'srno[{extra}]'") from None


def whole_number(value: Any) -> int:
    """An integer, also one of numpy; TypeError for anything else, True among it."""
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def two_whole_numbers(values: Any) -> tuple[int, int]:
    """Two integers in a tuple, a list or an array; TypeError or ValueError for anything else, also without an order."""
    if isinstance(values, Set | Mapping):
        raise TypeError
    first, second = (whole_number(value) for value in values)
    return first, second
