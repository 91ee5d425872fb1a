"""Server-sent events where the Accept header decides between them and one JSON response.

FastAPI sends keep-alive comments for generator endpoints only; this does it for such a response.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event


class EventStream(EventSourceResponse):
    """A response of events, with a comment whenever none came for `ping_s` seconds."""

    def __init__(self, events: AsyncGenerator[bytes, None], ping_s: float) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(_with_pings(events, ping_s), headers=headers)


def event(name: str, data: Any) -> bytes:
    """One event; its data is JSON on one line."""
    return format_sse_event(event=name, data_str=json.dumps(data))


async def _with_pings(events: AsyncGenerator[bytes, None], ping_s: float) -> AsyncIterator[bytes]:
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
