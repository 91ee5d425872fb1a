"""In and out: archives of users, and the files that other programs export.

A file is the body of a request as it is, and first written to a temporary file. The response is a
stream of server-sent events, or one JSON object where only that is accepted:

    progress   how much of how much is read or written
    report     what came of it, at the end
    error      a problem, at the end
"""

import asyncio
import re
import threading
import time
from asyncio import to_thread
from collections.abc import AsyncGenerator, Callable
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from memorist.records.archive import RestoreReport
from memorist.records.values import Tally
from memorist.server.http import schemas
from memorist.server.http.events import Accept, NamedEvent, event, event_response, wants_json
from memorist.server.http.openapi import AT, stream_response
from memorist.server.http.problems import on_error
from memorist.server.http.routing import Caller, Url, operation
from memorist.transfer.importing import Progress, Report, run_import
from memorist.transfer.items import Skipped
from memorist.transfer.source import Source

PING_S = 15.0
TELL_S = 0.1  # between two events of progress
FILE = {"schema": {"type": "string", "format": "binary"}, "example": "the bytes of the file"}
UPLOAD: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/octet-stream": FILE}}
}
Tell = Callable[[str, int, int], None]
"""Takes what is done (reading, writing), how much of it, and how much there is."""
Work = Callable[[Path, Tell], Any]


class ExportQuery(schemas.UserRequest):
    """Whose archive, and whether with vectors."""

    vectors: bool = Field(False, description="With the vectors, which can be made again.")


class ImportQuery(schemas.UserRequest):
    """Whose the file becomes, and what it is."""

    filename: str = Field("export", max_length=255, description="Of the file, to recognise it by.")
    format: str | None = Field(None, max_length=40, description="Else it is recognised.")
    dry_run: bool = Field(False, description="Only say what is in the file.")
    one_user: bool = Field(
        True, description="All of it becomes the user's. False, for admins: each keeps theirs."
    )


_REPORT = Report("chatgpt", "ChatGPT data export", dry_run=False)
_REPORT.found.update(messages=12)
_REPORT.added.update(messages=11)
_REPORT.conversations, _REPORT.first, _REPORT.last = Tally(2), AT, AT
_REPORT.skip(Skipped("entry 3", "a message without text"))
_RESTORED = RestoreReport(users=1, added={"message": 12})


def _response_to(report: Any) -> dict[str, Any]:
    """The response of a work on a file."""
    events = event("progress", {"doing": "writing", "done": 1, "total": 2})
    events += event("report", report)
    return stream_response("Events: progress …, then report or error.", report, events)


@operation(
    "export",
    response_class=StreamingResponse,
    responses={200: {"description": "An archive.", "content": {"application/gzip": FILE}}},
)
async def export(query: Url[ExportQuery], caller: Caller) -> StreamingResponse:
    """Everything of a user or, for an admin who names none, of all users, as one archive."""
    user = caller.user_or_all(query.user)
    pieces = caller.memory.export(user, vectors=query.vectors)
    # With the first user's part, so that a refusal is answered as such.
    first = await to_thread(lambda: b"".join(islice(pieces, 2)))
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", user or caller.memory.tenant_name)[:60]
    file = f"memorist-{name}-{caller.memory.clock():%Y-%m-%d}.memorist.gz"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    whole = chain([first], pieces)
    return StreamingResponse(whole, media_type="application/gzip", headers=headers)


@operation(
    "restore",
    response_model=RestoreReport,
    responses={200: _response_to(_RESTORED)},
    openapi_extra=UPLOAD,
)
async def restore(
    query: Url[schemas.UserRequest], request: Request, caller: Caller, accept: Accept = "*/*"
) -> Response:
    """Store what an archive holds: one user's, or for an admin who names none, that of all.

    What is there already stays as it is, so that the same archive twice changes nothing.
    """
    user = caller.user_or_all(query.user)

    def work(path: Path, tell: Tell) -> RestoreReport:
        with path.open("rb") as file:
            return caller.memory.restore(
                file, user=user, progress=lambda done, total: tell("writing", done, total)
            )

    return await _response_for_file(request, "archive", work, accept)


@operation(
    "import_file",
    response_model=Report,
    responses={200: _response_to(_REPORT)},
    openapi_extra=UPLOAD,
)
async def import_file(
    query: Url[ImportQuery], request: Request, caller: Caller, accept: Accept = "*/*"
) -> Response:
    """Bring in a file that another program exported, or only say what is in it.

    A file that is broken or cut off is refused before anything is stored. The same file twice
    changes nothing.
    """
    user = caller.user(query.user)
    if not query.one_user:
        caller.require_admin()

    def work(path: Path, tell: Tell) -> Report:
        def progress(it: Progress) -> None:
            tell("writing" if it.writing else "reading", it.bytes_read, it.bytes_total)

        return run_import(
            caller.memory,
            Source(path),
            user=user,
            one_user=query.one_user,
            format=query.format,
            dry_run=query.dry_run,
            on_progress=progress,
        )

    return await _response_for_file(request, query.filename, work, accept)


async def _response_for_file(request: Request, filename: str, work: Work, accept: str) -> Response:
    """The response of a work on the file in the body."""
    folder = TemporaryDirectory(prefix="memorist-")
    # Formats look at the name and its ending; it is no path of ours.
    name = re.sub(r"[^\w. -]", "_", re.split(r"[/\\]", filename)[-1]).strip(". ")
    path = Path(folder.name) / (name[-100:] or "export")
    try:
        with path.open("wb") as file:
            async for chunk in request.stream():
                await to_thread(file.write, chunk)
    except BaseException:  # it is too large, too slow, or cut off
        folder.cleanup()
        raise
    events = events_of(folder, path, work)
    if not wants_json(accept):
        return event_response(events, partial(on_error, request), PING_S)
    report = [data async for _, data in events][-1]
    return Response(TypeAdapter(type(report)).dump_json(report), media_type="application/json")


class _GoneError(Exception):
    """The client is gone: nobody waits for the rest of the work."""


async def events_of(
    folder: TemporaryDirectory[str], path: Path, work: Work
) -> AsyncGenerator[NamedEvent, None]:
    """What a work in a thread tells, and its report; the folder goes when it ends."""
    loop, gone = asyncio.get_running_loop(), threading.Event()
    news: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    told_at = 0.0

    def tell(doing: str, done: int, total: int) -> None:
        nonlocal told_at
        if gone.is_set():
            raise _GoneError
        if done < total and time.monotonic() < told_at + TELL_S:
            return
        told_at = time.monotonic()
        it = {"doing": doing, "done": done, "total": total}
        loop.call_soon_threadsafe(news.put_nowait, it)

    def run() -> Any:
        with folder:
            return work(path, tell)

    task = asyncio.ensure_future(to_thread(run))
    task.add_done_callback(lambda _: news.put_nowait(None))
    try:
        while (it := await news.get()) is not None:
            yield "progress", it
        yield "report", await task
    finally:
        gone.set()
        task.add_done_callback(lambda it: it.cancelled() or it.exception())  # nobody else asks
