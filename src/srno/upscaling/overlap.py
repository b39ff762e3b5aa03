"""Do the jobs of a batch in order, and read the next one and write the last one while one is computed."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import zip_longest
from typing import TypeVar

Item = TypeVar("Item")
Loaded = TypeVar("Loaded")
Result = TypeVar("Result")


def overlapped(
    items: Sequence[Item],
    load: Callable[[Item], Loaded],
    work: Callable[[Item, Loaded], Callable[[], Result]],
    small: Callable[[Item], bool],
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in order: the function that `work` returns, called, is the result.

    `load` runs one item ahead of `work` and the returned function one item behind, each in a thread of its own, so at
    most three items are in memory. Items that are not `small` overlap with nothing: they are loaded and finished in
    the calling thread, where Ctrl-C stops them at once.
    """
    with ThreadPoolExecutor(1, "srno-read") as reader, ThreadPoolExecutor(1, "srno-write") as writer:
        ahead: Future[Loaded] | None = None
        behind: tuple[Item, Future[Result]] | None = None
        for item, following in zip_longest(items, items[1:]):
            loaded = load(item) if ahead is None else ahead.result()
            overlaps = following is not None and small(item) and small(following)
            ahead = reader.submit(load, following) if overlaps and following is not None else None
            try:
                finish = work(item, loaded)
            except BaseException:
                if behind is not None:  # it is finished all the same
                    yield behind[0], behind[1].result()
                raise
            del loaded
            if behind is not None:
                yield behind[0], behind[1].result()
            behind = (item, writer.submit(finish)) if overlaps else None
            if behind is None:
                yield item, finish()
        # the last item has no following one, so nothing is left behind
