"""Being asked to stop, by Ctrl-C or by whoever runs the machine."""

import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def stop_requests(*, insist: bool) -> Generator[list[int]]:
    """Collect SIGTERM and SIGINT instead of dying of them.

    With `insist`, a second Ctrl-C is not collected. Under torchrun it must be: each one comes twice there, from the
    terminal and from torchrun.
    """
    requests: list[int] = []

    def ask(number: int, _: object) -> None:
        requests.append(number)
        if insist:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
