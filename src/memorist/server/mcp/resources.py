"""MCP resources (notes and sessions by URI) and the prompt with memories."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import unquote

from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ResourceError, ToolError
from pydantic import Field

from memorist.agents.toolbox import LONGEST_QUESTION, Toolbox, check_length
from memorist.aio import in_thread
from memorist.records.message import readable
from memorist.server.mcp.sdk import current_request, translate_errors
from memorist.views.notebook import Notebook

PROMPT_TOKENS = 4_000
MOST_MESSAGES = 200  # of a session
MARKDOWN, DATA = "text/markdown", "application/json"

ToolboxOf = Callable[[Any], Toolbox]
"""The toolbox that a call may use, by its HTTP request; None over stdio."""


def add_resources(server: FastMCP, toolbox_of: ToolboxOf, *, own: bool) -> None:
    """Add notes and sessions. With `own`, callers reach their own without naming themselves."""

    async def load(read: Callable[..., str], *parts: str) -> str:
        names, request = [unquote(part) for part in parts], current_request()
        work = lambda: read(toolbox_of(request), *names)  # noqa: E731
        return await in_thread(translate_errors, work, ResourceError)

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

    if own:
        server.resource("memorist://notes", mime_type=MARKDOWN)(notes)
        server.resource("memorist://sessions", mime_type=DATA)(sessions)
    server.resource("memorist://notes/{user}", mime_type=MARKDOWN)(user_notes)
    server.resource("memorist://notes/{user}/{agent}", mime_type=MARKDOWN)(agent_notes)
    server.resource("memorist://sessions/{user}", mime_type=DATA)(user_sessions)
    server.resource("memorist://sessions/{user}/{session}", mime_type=DATA)(session)


def add_prompt(server: FastMCP, toolbox_of: ToolboxOf) -> None:
    """Add the prompt that puts memories before a question."""

    async def ask_with_memory(
        question: Annotated[str, Field(description="What you want to ask.")],
        user_id: Annotated[str, Field(description="Whose memory to use.")] = "",
    ) -> str:
        """A question with the notes and memories that bear on it, quoted."""
        request = current_request()
        work = lambda: _prompt(toolbox_of(request), question, user_id)  # noqa: E731
        return await in_thread(translate_errors, work, ToolError)

    server.prompt()(ask_with_memory)


def _notes(toolbox: Toolbox, user: str | None = None, agent: str | None = None) -> str:
    box = toolbox.for_user(user)
    return Notebook(box.memory, user=box.user or "", agent=agent or box.agent).read()


def _sessions(toolbox: Toolbox, user: str | None = None) -> str:
    box = toolbox.for_user(user)
    rows = [
        {"id": row.id, "agent": row.scope.agent, "created_at": row.created_at.isoformat()}
        for row in box.memory.sessions(user=box.user or "", agent=box.agent)
    ]
    return json.dumps(rows, ensure_ascii=False)


def _session(toolbox: Toolbox, user: str, session: str) -> str:
    box = toolbox.for_user(user)
    messages = box.memory.history(
        user=box.user or "", agent=box.agent, session=session, last=MOST_MESSAGES
    )
    rows = [
        {"id": row.message_id, "role": row.role, "text": row.text, "at": row.created_at.isoformat()}
        for row in messages
    ]
    return json.dumps(rows, ensure_ascii=False)


def _prompt(toolbox: Toolbox, question: str, user_id: str) -> str:
    box = toolbox.for_user(user_id)
    check_length(question, LONGEST_QUESTION, "question")
    context = box.memory.context(
        question, user=box.user or "", agent=box.agent, max_tokens=PROMPT_TOKENS
    )
    return "\n\n".join(readable(message["content"]) for message in context.messages)
