"""Notes: one Markdown text per user and agent, every version kept."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel
from starlette.responses import Response

from memorist.errors import InvalidError
from memorist.records.ids import now
from memorist.records.note import Note
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.examples import NOTE, listed, shown
from memorist.server.http.pagination import Cursor, Limit, Page, page_of
from memorist.server.http.paths import Parts
from memorist.server.http.schemas import Agent, User
from memorist.server.http.schemas_views import LARGEST, ManageNotes, RestoreNotes, WriteNotes
from memorist.views.notebook import Notebook

router = APIRouter(prefix="/api/notes", tags=["notes"], route_class=Parts)
IfMatch = Annotated[
    str | None,
    Header(description="The ETag of the version it was made of.", max_length=20, examples=['"1"']),
]
_ETAG = re.compile(r'(?:W/)?"([0-9]{1,9})"')


class Managed(BaseModel):
    """What came of an edit, told as to a model, and the version that the notes are at."""

    result: str
    version: int


@router.get("", responses=shown(NOTE))
def get_notes(
    caller: CurrentCaller,
    response: Response,
    user: User = None,
    agent: Agent = None,
    version: Annotated[int | None, Query(ge=1, le=LARGEST, description="Else the newest.")] = None,
) -> Note:
    """The notes as they are, or as they were at a version; version 0 says that there are none."""
    if version is not None:
        book = Notebook(caller.memory, user=caller.user(user), agent=agent)
        return _tagged(book.at(version), response)
    scope = caller.memory.scope(user=caller.user(user), agent=agent)
    nothing = Note(id="", scope=scope, version=0, text="", created_at=now())
    return _tagged(caller.memory.store.note(scope) or nothing, response)


@router.put("", responses=shown(NOTE))
def write_notes(
    ask: WriteNotes, caller: CurrentCaller, response: Response, if_match: IfMatch = None
) -> Note:
    """Put a text in the place of the version it was made of; 409 if there is a newer one."""
    base = ask.base_version if ask.base_version is not None else _version(if_match)
    book = Notebook(caller.memory, user=caller.user(ask.user), agent=ask.agent)
    return _tagged(book.write(ask.text, base_version=base), response)


@router.get("/versions", responses=listed(NOTE))
def list_versions(
    caller: CurrentCaller,
    user: User = None,
    agent: Agent = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Note]:
    """Every version, newest first."""
    book = Notebook(caller.memory, user=caller.user(user), agent=agent)
    return page_of(book.versions(), limit, cursor, lambda note: f"{LARGEST - note.version:010}")


@router.post("/manage", responses=shown(Managed(result="Appended.", version=2)))
def manage_notes(ask: ManageNotes, caller: CurrentCaller) -> Managed:
    """Read, overwrite, append, prepend, or edit a section, as a model's tool does."""
    book = Notebook(caller.memory, user=caller.user(ask.user), agent=ask.agent)
    result = book.manage(ask.operation, ask.content, ask.section_header)
    return Managed(result=result, version=book.version)


@router.post("/restore", responses=shown(NOTE))
def restore_notes(ask: RestoreNotes, caller: CurrentCaller, response: Response) -> Note:
    """Write the text of an old version as the newest."""
    book = Notebook(caller.memory, user=caller.user(ask.user), agent=ask.agent)
    return _tagged(book.restore(ask.version), response)


def _tagged(note: Note, response: Response) -> Note:
    response.headers["ETag"] = f'"{note.version}"'
    return note


def _version(if_match: str | None) -> int:
    found = _ETAG.fullmatch(if_match or "")
    if found is None:
        raise InvalidError(
            "base_version is missing: say which version the text was made of, 0 if there is none"
        )
    return int(found[1])
