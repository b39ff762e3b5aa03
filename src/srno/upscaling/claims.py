"""Claims on results, so that several processes share the work on one folder."""

import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from srno.errors import SRNOError
from srno.files import claimed, remove_leftovers


class ResultClaims:
    """The results that this process works on."""

    def __init__(self) -> None:
        self._held: dict[Path, ExitStack] = {}
        self._folders: set[Path] = set()
        self._lock = threading.Lock()

    def take(self, output: Path) -> bool:
        """Claim a result; False if another process works on it. Its folder is created if needed."""
        with self._lock, ExitStack() as stack:
            try:
                self._prepare(output.parent)
                if not stack.enter_context(claimed(output)):
                    return False
            except OSError as error:
                raise SRNOError(f"{output}: cannot be written ({error.strerror or error})") from None
            self._held[output] = stack.pop_all()
        return True

    def release(self, output: Path | None) -> None:
        """End the claim on a result, if this process has one."""
        with self._lock:
            stack = None if output is None else self._held.pop(output, None)
        if stack is not None:
            stack.close()

    def release_all(self) -> None:
        """End all claims."""
        for output in [*self._held]:
            self.release(output)

    def _prepare(self, folder: Path) -> None:
        """Create a folder, and remove what killed processes left in it, once."""
        if folder not in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(folder)
            self._folders.add(folder)


@contextmanager
def open_claims() -> Generator[ResultClaims]:
    """Yield an empty set of claims, and release those that are left at the end."""
    claims = ResultClaims()
    try:
        yield claims
    finally:
        claims.release_all()
