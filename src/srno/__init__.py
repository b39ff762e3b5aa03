"""Super-Resolution Neural Operator: a picture is a function; lift it once, evaluate it anywhere."""

from srno._version import __version__

__all__ = ["__version__"]
