"""What an MCP client may read: notes and sessions by their URIs, and a prompt with memories."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from memorist.agents.toolbox import LONGEST_QUESTION, Toolbox, check_length
from memorist.aio_life import in_thread
from memorist.errors import MissingExtraError
from memorist.records.message import readable
from memorist.server.mcp.shim import ResourceError, guarded, part, prompt_error, the_request
from memorist.views.notebook import Notebook

try:
    from pydantic import Field
except ImportError as error:
    raise MissingExtraError("mcp") from error

PROMPT_TOKENS = 4_000
MOST_MESSAGES = 200  # of a session
MARKDOWN, DATA = "text/markdown", "application/json"

Whose = Callable[[Any], Toolbox]
"""Whose toolbox a call may use, by the HTTP request that carried it, if one did."""


def add_resources(server: Any, whose: Whose, *, for_one: bool) -> None:
    """Let notes and sessions be read; where a caller may be one user, also without a name."""

    async def load(read: Callable[..., str], *parts: str) -> str:
        meant, request = [part(one) for one in parts], the_request()
        return await in_thread(guarded, lambda: read(whose(request), *meant), ResourceError)

    async def notes() -> str:
        """The notes about the user."""
        return await load(_notes)

    async def user_notes(user: str) -> str:
        """The notes about a user."""
        return await load(_notes, user)

    async def agent_notes(user: str, agent: str) -> str:
        """The notes of an agent about a user."""
        return await load(_notes, user, agent)

    async def sessions() -> str:
        """The user's conversations, oldest first."""
        return await load(_sessions)

    async def user_sessions(user: str) -> str:
        """A user's conversations, oldest first."""
        return await load(_sessions, user)

    async def session(user: str, session: str) -> str:
        """The newest messages of a conversation, oldest first."""
        return await load(_session, user, session)

    if for_one:
        server.resource("memorist://notes", mime_type=MARKDOWN)(notes)
        server.resource("memorist://sessions", mime_type=DATA)(sessions)
    server.resource("memorist://notes/{user}", mime_type=MARKDOWN)(user_notes)
    server.resource("memorist://notes/{user}/{agent}", mime_type=MARKDOWN)(agent_notes)
    server.resource("memorist://sessions/{user}", mime_type=DATA)(user_sessions)
    server.resource("memorist://sessions/{user}/{session}", mime_type=DATA)(session)


def add_prompt(server: Any, whose: Whose) -> None:
    """Offer a question together with what is remembered for it."""

    async def ask_with_memory(
        question: Annotated[str, Field(description="What you want to ask.")],
        user_id: Annotated[str, Field(description="Whose memory to use.")] = "",
    ) -> str:
        """A question with the notes and memories that bear on it, quoted."""
        request = the_request()
        return await in_thread(
            guarded, lambda: _prompt(whose(request), question, user_id), prompt_error
        )

    server.prompt()(ask_with_memory)


def _notes(toolbox: Toolbox, user: str | None = None, agent: str | None = None) -> str:
    box = toolbox.for_user(user)
    return Notebook(box.memory, user=box.user or "", agent=agent or box.agent).read()


def _sessions(toolbox: Toolbox, user: str | None = None) -> str:
    box = toolbox.for_user(user)
    found = box.memory.sessions(user=box.user or "", agent=box.agent)
    told = [
        {"id": it.id, "agent": it.scope.agent, "created_at": it.created_at.isoformat()}
        for it in found
    ]
    return json.dumps(told, ensure_ascii=False)


def _session(toolbox: Toolbox, user: str, session: str) -> str:
    box = toolbox.for_user(user)
    found = box.memory.history(
        user=box.user or "", agent=box.agent, session=session, last=MOST_MESSAGES
    )
    told = [
        {"id": it.message_id, "role": it.role, "text": it.text, "at": it.created_at.isoformat()}
        for it in found
    ]
    return json.dumps(told, ensure_ascii=False)


def _prompt(toolbox: Toolbox, question: str, user_id: str) -> str:
    box = toolbox.for_user(user_id)
    check_length(question, LONGEST_QUESTION, "question")
    context = box.memory.context(
        question, user=box.user or "", agent=box.agent, max_tokens=PROMPT_TOKENS
    )
    return "\n\n".join(readable(message["content"]) for message in context.messages)
