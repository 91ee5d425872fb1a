"""Server-sent events: what happens, as it happens, over a plain answer that stays open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

HEARTBEAT_S = 15.0
BEAT = b": still here\n\n"


class EventStream(StreamingResponse):
    """An answer of events, which nobody on the way keeps back."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None], heartbeat_s: float = HEARTBEAT_S):
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(beating(events, heartbeat_s), headers=headers)


def event(name: str, data: Any, id: int | str | None = None) -> bytes:
    """One event as it goes over the wire; its data is JSON on one line."""
    told = f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
    return (told if id is None else f"id: {id}\n{told}").encode("utf-8", "replace")


async def beating(
    events: AsyncGenerator[bytes, None], every_s: float = HEARTBEAT_S
) -> AsyncIterator[bytes]:
    """The events, and a comment where none came for so long: proxies close what is silent."""
    coming = asyncio.ensure_future(anext(events))
    try:
        while True:
            done, _ = await asyncio.wait({coming}, timeout=every_s)
            if not done:
                yield BEAT
                continue
            try:
                piece = coming.result()
            except StopAsyncIteration:
                return
            yield piece
            coming = asyncio.ensure_future(anext(events))
    finally:
        coming.cancel()
        await asyncio.wait({coming})
        await events.aclose()
