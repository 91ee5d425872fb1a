"""Server-sent events: what happens, as it happens, over a plain answer that stays open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from memorist.aio import in_thread
from memorist.records.message import Message

HEARTBEAT_S = 15.0
BEAT = b": still here\n\n"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.25


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


async def growth(
    look: Callable[[], Message | None], request: Request, *, seen: int, timeout_s: float
) -> AsyncGenerator[bytes, None]:
    """What is added to a message, until it is finished, gone, silent for so long, or unread.

    No thread waits: one looks from time to time, less often while nothing comes.
    """
    clock = asyncio.get_running_loop().time
    until, pause = clock() + timeout_s, FIRST_PAUSE_S
    stopping: asyncio.Event = request.app.state.stopping
    while not await request.is_disconnected():
        message = await in_thread(look)
        if message is None:
            yield event("gone", {})
            return
        text = message.content if isinstance(message.content, str) else ""
        if len(text) > seen:
            yield event("text", {"text": text[seen:], "at": seen}, id=len(text))
            seen, until, pause = len(text), clock() + timeout_s, FIRST_PAUSE_S
        if not message.unfinished:
            yield event("finished", {"message_id": message.message_id, "chars": len(text)})
            return
        if stopping.is_set() or clock() >= until:
            yield event("timeout", {"chars": seen})
            return
        await asyncio.sleep(pause)
        pause = min(pause * 1.2, LONGEST_PAUSE_S)
