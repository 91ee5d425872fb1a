"""Shapes of chat: the message to be answered, and what becomes of it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from memorist.records.query import Recall
from memorist.server.http.routes.context import ContextAnswer, ReceiptAnswer
from memorist.server.http.schemas import Question, RequestModel

NO_MODEL = (
    "No model is configured, so nobody answers. Your message is stored; `memory` is what was "
    "recalled for it, and `context` exactly what a model would have been sent. To have answers, "
    "set MEMORIST_MODEL=provider:name (as openai:gpt-5-mini), or the name of any model beside "
    "MEMORIST_MODEL_URL=http://… of a server that speaks OpenAI's format, and "
    "MEMORIST_MODEL_KEY if it asks for a key; then start the server again."
)


class ChatAsk(RequestModel):
    """A message to the agent, or the id of one that is stored and wants an answer."""

    message: Question | None = Field(
        default=None, min_length=1, examples=["What should I do at the weekend?"]
    )
    asked_id: str | None = Field(
        default=None,
        description="Your id for the message: sent again with it, the message is not stored "
        "again. Without a message: answer this one, which is stored.",
    )
    session_id: str | None = Field(
        default=None, description="What the client holds; else the active one goes on."
    )
    agent_id: str | None = Field(default=None, description="With which agent.", examples=["tutor"])
    user: str | None = Field(default=None, description="Only an admin says whose.")


class ChatSession(BaseModel):
    """The conversation that goes on; `confirmed` says that it is the one the client holds."""

    session_id: str
    confirmed: bool


class ChatTool(BaseModel):
    """What a tool answered, or how it failed."""

    name: str
    arguments: dict[str, Any]
    result: str
    success: bool
    duration_ms: float


class ChatDone(BaseModel):
    """What is stored: the answer, if there is one, and the message that it answers."""

    session_id: str
    message_id: str | None = None
    asked_id: str
    warnings: list[str] = Field(
        default=[], description="What of the memory failed or was late; nobody's words."
    )


class ChatAnswer(ChatSession, ChatDone):
    """The whole of a turn in one answer.

    Where no model is configured, `message` is null, `notice` says so, and `context` is what would
    have been sent.
    """

    message: str | None = None
    notice: str | None = None
    memory: Recall | None = Field(default=None, description="What was recalled, best first.")
    tool_results: list[ChatTool] = []
    receipt: ReceiptAnswer | None = None
    context: ContextAnswer | None = None
