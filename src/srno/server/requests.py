"""Reading what comes in, within limits, and waiting for work on behalf of someone who may hang up."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from srno.errors import SRNOError
from srno.server.workers import StoppedError, Task

if TYPE_CHECKING:
    from starlette.requests import Request

Result = TypeVar("Result")
Facts: TypeAlias = Mapping[str, Any]

ENVELOPE = 10_000
"""Bytes that a form may take beside the file in it."""
BEAT = 0.1
"""Seconds between two words about progress."""
MEGABYTE = 1_000_000


class TooLargeError(SRNOError):
    """More bytes than the limit allows."""


async def read_file(request: "Request", limit: int) -> tuple[str, bytes]:
    """Name and content of the field `file` of a form."""
    from starlette.datastructures import UploadFile
    from starlette.formparsers import MultiPartException, MultiPartParser

    class InMemory(MultiPartParser):
        spool_max_size = limit + ENVELOPE  # never on disk

    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise SRNOError("send the picture as a form, in the field `file`")
    try:
        async with aclosing(_limited(request, limit + ENVELOPE)) as stream:
            form = await InMemory(request.headers, stream, max_files=1, max_fields=8).parse()
    except MultiPartException as error:
        raise SRNOError(f"the form cannot be read: {error.message}") from None
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise SRNOError("the form has no file in its field `file`")
    data = await file.read()
    await form.close()
    if len(data) > limit:
        raise _too_large(limit)
    return _plain(file.filename or "picture"), data


async def read_json(request: "Request") -> Facts:
    """The JSON object in the body."""
    async with aclosing(_limited(request, ENVELOPE)) as stream:
        body = b"".join([part async for part in stream])
    try:
        given = json.loads(body)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise SRNOError("send a JSON object")
    return given


def read_numbers(request: "Request", name: str, count: int) -> tuple[int, ...]:
    """Whole numbers with commas between them, from the query."""
    text = request.query_params.get(name, "")
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})" + f"{{{count - 1}}}", text):
        raise SRNOError(f"{name} {text[:40]!r}: write {count} whole numbers with commas between them")
    return tuple(int(number) for number in text.split(","))


async def finish(request: "Request", job: Task[Result]) -> Result:
    """The result of a job, which is called off as soon as the client hangs up."""
    result = _awaitable(job)
    hung_up = asyncio.create_task(_hung_up(request))
    try:
        await asyncio.wait({result, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if hung_up.done():
            job.cancel()
        return await result
    except asyncio.CancelledError:
        if job.future.cancelled():
            raise StoppedError from None
        raise
    finally:
        hung_up.cancel()
        job.cancel()


async def watch(job: Task[Result], describe: Callable[[Result], Facts]) -> AsyncGenerator[bytes]:
    """Lines of JSON until a job is done; when nobody listens any more, it is called off."""
    future = _awaitable(job)
    try:
        while not (await asyncio.wait({future}, timeout=BEAT))[0]:
            yield _line(
                {"share": round(job.share, 4), "seconds": job.seconds_left, "waiting": not job.future.running()}
            )
        yield _line(_outcome(future, describe))
    finally:
        job.cancel()


def _awaitable(job: Task[Result]) -> "asyncio.Future[Result]":
    """Its result; an error that nobody stayed to hear of is no news."""
    future = asyncio.wrap_future(job.future)
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future


def _outcome(future: "asyncio.Future[Result]", describe: Callable[[Result], Facts]) -> Facts:
    if future.cancelled():
        return {"error": "stopped"}
    error = future.exception()
    if error is None:
        return {"done": True, **describe(future.result())}
    if isinstance(error, SRNOError | StoppedError):
        return {"error": str(error) or "stopped"}
    logging.getLogger(__name__).error("a job failed", exc_info=error)
    return {"error": "something went wrong in the server; its terminal says more"}


def _line(facts: Facts) -> bytes:
    return json.dumps(facts).encode() + b"\n"


async def _hung_up(request: "Request") -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _limited(request: "Request", limit: int) -> AsyncGenerator[bytes]:
    """The body, as long as it keeps within `limit` bytes."""
    claimed = request.headers.get("content-length", "0")
    if not claimed.isdecimal() or int(claimed) > limit:
        raise _too_large(limit)
    received = 0
    async with aclosing(request.stream()) as stream:
        async for part in stream:
            received += len(part)
            if received > limit:
                raise _too_large(limit)
            yield part


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"too large: the limit is {limit / MEGABYTE:.3g} MB")


def _plain(name: str) -> str:
    """A file's name without folders or control characters."""
    return "".join(letter for letter in re.split(r"[/\\]", name)[-1] if letter.isprintable())[:200] or "picture"
