"""MCP resources (notes and sessions by URI) and the prompt with memories."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

from mcp.server.fastmcp.exceptions import ResourceError, ToolError
from pydantic import Field

from memorist.agents.toolbox import LONGEST_QUESTION, Toolbox, check_length
from memorist.records.message import readable
from memorist.views.notebook import Notebook

if TYPE_CHECKING:
    from memorist.server.mcp.server import McpServer

PROMPT_TOKENS = 4_000
MOST_MESSAGES = 200  # of a session
MARKDOWN, DATA = "text/markdown", "application/json"


def add_resources(server: McpServer, *, own: bool) -> None:
    """Add notes and sessions. With `own`, callers reach their own without naming themselves."""

    async def load(read: Callable[..., str], *parts: str) -> str:
        names = [unquote(part) for part in parts]
        return await server.work(lambda toolbox: read(toolbox, *names), ResourceError)

    if own:

        @server.resource("memorist://notes", mime_type=MARKDOWN)
        async def notes() -> str:
            """The notes about the user."""
            return await load(_notes)

        @server.resource("memorist://sessions", mime_type=DATA)
        async def sessions() -> str:
            """The user's conversations, oldest first."""
            return await load(_sessions)

    @server.resource("memorist://notes/{user}", mime_type=MARKDOWN)
    async def user_notes(user: str) -> str:
        """The notes about a user."""
        return await load(_notes, user)

    @server.resource("memorist://notes/{user}/{agent}", mime_type=MARKDOWN)
    async def agent_notes(user: str, agent: str) -> str:
        """The notes of an agent about a user."""
        return await load(_notes, user, agent)

    @server.resource("memorist://sessions/{user}", mime_type=DATA)
    async def user_sessions(user: str) -> str:
        """A user's conversations, oldest first."""
        return await load(_sessions, user)

    @server.resource("memorist://sessions/{user}/{session}", mime_type=DATA)
    async def session(user: str, session: str) -> str:
        """The newest messages of a conversation, oldest first."""
        return await load(_session, user, session)


def add_prompt(server: McpServer) -> None:
    """Add the prompt that puts memories before a question."""

    @server.prompt()
    async def ask_with_memory(
        question: Annotated[str, Field(description="What you want to ask.")],
        user_id: Annotated[str, Field(description="Whose memory to use.")] = "",
    ) -> str:
        """A question with the notes and memories that bear on it, quoted."""
        return await server.work(lambda toolbox: _prompt(toolbox, question, user_id), ToolError)


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
