"""Read request bodies within limits of size and time, and wait for jobs of clients that may disconnect."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from srno.errors import SRNOError
from srno.server.workers import StoppedError, Task

if TYPE_CHECKING:
    from starlette.requests import Request

Result = TypeVar("Result")
JSONObject: TypeAlias = Mapping[str, Any]

MAX_FORM_OVERHEAD_BYTES = 10_000
"""Bytes that a form may take beside the file in it; also the largest JSON body."""
BODY_TIMEOUT_SECONDS = 30.0
"""Longest pause within a body."""
MEGABYTE = 1_000_000


class TooLargeError(SRNOError):
    """More bytes than the limit allows."""


class SlowError(SRNOError):
    """The client stopped sending in the middle of a request."""


async def read_file(request: "Request", limit: int) -> tuple[str, bytes]:
    """Name and content of the field `file` of a form."""
    from starlette.datastructures import UploadFile
    from starlette.formparsers import MultiPartException, MultiPartParser

    class InMemory(MultiPartParser):
        spool_max_size = limit + MAX_FORM_OVERHEAD_BYTES  # keeps uploads in memory, off the disk

    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise SRNOError("send the picture as a form, in the field `file`")
    try:
        async with aclosing(_limited(request, limit + MAX_FORM_OVERHEAD_BYTES)) as stream:
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
    return _base_name(file.filename or "picture"), data


async def read_json(request: "Request") -> JSONObject:
    """The JSON object in the body."""
    async with aclosing(_limited(request, MAX_FORM_OVERHEAD_BYTES)) as stream:
        body = b"".join([part async for part in stream])
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):  # deep nesting exhausts the parser's stack
        value = None
    if not isinstance(value, dict):
        raise SRNOError("send a JSON object")
    return value


def read_numbers(request: "Request", name: str, count: int) -> tuple[int, ...]:
    """Comma-separated whole numbers from the query string."""
    text = request.query_params.get(name, "")
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})" + f"{{{count - 1}}}", text):
        raise SRNOError(f"{name} {text[:40]!r}: give {count} whole numbers separated by commas")
    return tuple(int(number) for number in text.split(","))


async def finish(request: "Request", job: Task[Result]) -> Result:
    """Wait for the result of a job; cancel the job when the client disconnects."""
    if job.future.done():
        return job.future.result()
    result = _awaitable(job)
    disconnect = asyncio.create_task(_wait_for_disconnect(request))
    try:
        await asyncio.wait({result, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if disconnect.done():
            job.cancel()
        return await result
    except asyncio.CancelledError:
        if job.future.cancelled():
            raise StoppedError from None
        raise
    finally:
        disconnect.cancel()
        job.cancel()


def _awaitable(job: Task[Result]) -> "asyncio.Future[Result]":
    """The job's future for asyncio."""
    future = asyncio.wrap_future(job.future)
    # Reading the exception keeps asyncio from logging one that a disconnected client never retrieves.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future


async def _wait_for_disconnect(request: "Request") -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def declared_length(request: "Request", limit: int) -> int:
    """Bytes of the body as its header declares them, or the limit if it does not; raises beyond the limit."""
    declared = request.headers.get("content-length")
    if declared is None:
        return limit
    if not declared.isdecimal() or int(declared) > limit:
        raise _too_large(limit)
    return int(declared)


async def _limited(request: "Request", limit: int) -> AsyncGenerator[bytes]:
    """Yield the body; raise once it has more than `limit` bytes or pauses for too long."""
    declared_length(request, limit)
    received = 0
    async with aclosing(request.stream()) as stream:
        while True:
            try:
                part = await asyncio.wait_for(anext(stream), BODY_TIMEOUT_SECONDS)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise SlowError(f"the request stopped for {BODY_TIMEOUT_SECONDS:.0f} seconds") from None
            received += len(part)
            if received > limit:
                raise _too_large(limit)
            yield part


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"too large: the limit is {limit / MEGABYTE:.3g} MB")


def _base_name(name: str) -> str:
    """A file's name without folders or control characters."""
    return "".join(letter for letter in re.split(r"[/\\]", name)[-1] if letter.isprintable())[:200] or "picture"
