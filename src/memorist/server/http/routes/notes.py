"""Notes: one Markdown text for each user and agent, every version kept."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel
from starlette.responses import Response

from memorist.errors import InvalidError
from memorist.records.documents import Note
from memorist.records.values import now
from memorist.server.http.authentication import CurrentCaller
from memorist.server.http.openapi import NOTE, example, example_page
from memorist.server.http.pagination import Page, page_of
from memorist.server.http.routing import ApiRoute, operation
from memorist.server.http.schemas import (
    MAX_INT,
    AgentPageQuery,
    ManageNotesBody,
    NotesQuery,
    RestoreNotesBody,
    WriteNotesBody,
)

router = APIRouter(route_class=ApiRoute)
IfMatch = Annotated[
    str | None,
    Header(description="The ETag of the version it replaces.", max_length=20, examples=['"1"']),
]
_ETAG = re.compile(r'(?:W/)?"([0-9]{1,9})"')


class EditResult(BaseModel):
    """What an edit did, in words for a model, and the version that the notes have now."""

    result: str
    version: int


@operation(router, "get_notes", responses=example(NOTE))
def get_notes(
    query: Annotated[NotesQuery, Query()], caller: CurrentCaller, response: Response
) -> Note:
    """The notes, as they are or as a version had them; version 0 says that there are none."""
    scope = caller.memory.scope(user=caller.user(query.user), agent=query.agent)
    if query.version is not None:
        notebook = caller.memory.notes(user=caller.user(query.user), agent=query.agent)
        return _with_etag(notebook.at(query.version), response)
    empty = Note(id="", scope=scope, version=0, text="", created_at=now())
    return _with_etag(caller.memory.note_versions.get(scope) or empty, response)


@operation(router, "write_notes", responses=example(NOTE))
def write_notes(
    body: WriteNotesBody, caller: CurrentCaller, response: Response, if_match: IfMatch = None
) -> Note:
    """Replace a version of the notes; 409 if there is a newer one."""
    base = body.base_version if body.base_version is not None else _version(if_match)
    notebook = caller.memory.notes(user=caller.user(body.user), agent=body.agent)
    return _with_etag(notebook.write(body.text, base_version=base), response)


@operation(router, "list_versions", responses=example_page(NOTE))
def list_versions(query: Annotated[AgentPageQuery, Query()], caller: CurrentCaller) -> Page[Note]:
    """Every version, newest first."""
    notebook = caller.memory.notes(user=caller.user(query.user), agent=query.agent)
    return page_of(notebook.versions(), query, lambda note: f"{MAX_INT - note.version:010}")


@operation(router, "manage_notes", responses=example(EditResult(result="Appended.", version=2)))
def manage_notes(body: ManageNotesBody, caller: CurrentCaller) -> EditResult:
    """Read, overwrite, append, prepend, or edit a section, as a model's tool does."""
    notebook = caller.memory.notes(user=caller.user(body.user), agent=body.agent)
    result = notebook.manage(body.operation, body.content, body.section_header)
    return EditResult(result=result, version=notebook.version)


@operation(router, "restore_notes", responses=example(NOTE))
def restore_notes(body: RestoreNotesBody, caller: CurrentCaller, response: Response) -> Note:
    """Write the text of an old version as the newest."""
    notebook = caller.memory.notes(user=caller.user(body.user), agent=body.agent)
    return _with_etag(notebook.restore(body.version), response)


def _with_etag(note: Note, response: Response) -> Note:
    response.headers["ETag"] = f'"{note.version}"'
    return note


def _version(if_match: str | None) -> int:
    match = _ETAG.fullmatch(if_match or "")
    if match is None:
        raise InvalidError("base_version is missing: give the version it replaces, 0 for none")
    return int(match[1])
