"""Server-sent events: how they are written, and a stream that ends in a problem if it fails."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import Header
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic_core import to_jsonable_python
from starlette.responses import Response

from memorist.errors import MemoristError

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
Accept = Annotated[str, Header(description="application/json for one answer, else events.")]
NamedEvent = tuple[str, Any]
"""The name of a server-sent event, and its data."""


def event(name: str, data: Any, id_: str | None = None) -> bytes:
    """A server-sent event; its data is JSON on one line."""
    return format_sse_event(event=name, data_str=json.dumps(to_jsonable_python(data)), id=id_)


def wants_json(accept: str) -> bool:
    """Whether a client takes one JSON object only, not a stream."""
    return "application/json" in accept and "text/event-stream" not in accept


def event_response(
    events: AsyncGenerator[NamedEvent, None],
    problem: Callable[[MemoristError], Awaitable[Response]],
    ping_s: float,
) -> EventSourceResponse:
    """A stream of events; an error is the last of them, as the body of its problem."""

    async def wire() -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(events):
                async for name, data in events:
                    yield event(name, data)
        except MemoristError as error:
            yield b"event: error\ndata: " + bytes((await problem(error)).body) + b"\n\n"

    return EventSourceResponse(with_pings(wire(), ping_s), headers=STREAM_HEADERS)


async def with_pings(events: AsyncGenerator[bytes, None], ping_s: float) -> AsyncIterator[bytes]:
    """The events, with a comment whenever none came for so many seconds."""
    coming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            done, _ = await asyncio.wait({coming}, timeout=ping_s)
            if not done:
                yield KEEPALIVE_COMMENT
            elif (piece := coming.result()) is None:
                return
            else:
                yield piece
                coming = asyncio.ensure_future(anext(events, None))
    finally:
        coming.cancel()
        await asyncio.wait({coming})
        await events.aclose()
