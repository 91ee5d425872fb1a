"""LlamaIndex's doors: a memory for agents and chat engines, and a retriever.

from llama_index.core.agent.workflow import FunctionAgent
from memorist import Memory
from memorist_adapters.llama_index import MemoristMemory

memory = MemoristMemory(memory=Memory(), user="ada", session="any id")
agent = FunctionAgent(llm=llm, tools=tools)
await agent.run("Where did I leave my bike?", memory=memory)
"""

from __future__ import annotations

import json
import logging
from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Self

from memorist.context.assemble import QUESTION_INTRO
from memorist.context.window import Window
from memorist.errors import InvalidError, MessageError, ProviderError, StoreError, needs_extra
from memorist.memory import Memory
from memorist.records.entry import findable
from memorist.records.message import Message, ToolCallMsg, without_orphan_results
from memorist.records.query import Filters, Hit

with needs_extra("llama-index", "memorist-adapters"):
    from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
    from llama_index.core.memory import BaseMemory
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from pydantic import ConfigDict, Field, PrivateAttr, ValidationError, model_validator

KEPT = "llama_index"  # in a message's structured data: the chat message that says more than it
LATELY = 50  # messages that are shown where nothing is asked
WINDOW = Window(max_tokens=30_000)
_ROLES = {"developer": "system", "function": "tool", "chatbot": "assistant", "model": "assistant"}

log = logging.getLogger("memorist")


class MemoristMemory(BaseMemory):
    """A conversation that lasts, with what is remembered of the user over all of theirs.

    `get` gives what a model is to see within the window: notes, the summary of older turns, the
    newest turns, and memories above the question. `get_all` gives every message as it was put.
    Without a session it is the user's active one with this agent. Where the store fails the
    agent goes on: `failed` says why, and what was said waits to be stored with the next.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory = Field(repr=False, exclude=True)
    user: str
    agent: str | None = None
    session: str = ""
    window: Any = Field(default=WINDOW, exclude=True)  # a Window, of which Pydantic knows nothing
    deadline_ms: float | None = Field(default=50.0, exclude=True)  # of what is recalled; None waits
    failed: str = Field(default="", exclude=True)
    _unsaved: list[Message] = PrivateAttr(default_factory=list)

    @model_validator(mode="after")
    def _open(self) -> Self:
        if not isinstance(self.window, Window):
            raise InvalidError(f"window must be a Window, got {type(self.window).__name__}")
        if not self.session:
            self.session = self.memory.session(user=self.user, agent=self.agent).id
        self.memory.scope(user=self.user, agent=self.agent, session=self.session)
        return self

    @classmethod
    def class_name(cls) -> str:
        return "MemoristMemory"

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> MemoristMemory:
        """The memory with these fields."""
        return cls(**kwargs)

    def get(
        self, input: str | None = None, initial_token_count: int = 0, **kwargs: Any
    ) -> list[ChatMessage]:
        """What a model is to see, with the question at the end if that was put already."""
        newest = next(iter(self._said(last=1)[-1:]), None)
        if newest is None or newest.role != "user" or not (newest.text or newest.images):
            newest = None
        if newest is not None and input in (None, newest.text):
            return [of_wire(wire) for wire in self._context(newest, initial_token_count)]
        if input and input.strip():
            return _before(input, self._context(Message("user", input), initial_token_count))
        shown = without_orphan_results(self._said(last=LATELY))
        return [chat_message_of(message) for message in shown]

    def get_all(self) -> list[ChatMessage]:
        """Every message as it was put."""
        return [chat_message_of(message) for message in self._said()]

    def put(self, message: ChatMessage) -> None:
        """Store a message durably."""
        self.put_messages([message])

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Store messages durably, and with them what could not be stored before."""
        self._unsaved += [message_of(message) for message in messages]
        try:
            self.memory.remember(
                self._unsaved, user=self.user, agent=self.agent, session=self.session
            )
            self._unsaved, self.failed = [], ""
        except StoreError as error:
            self.failed = str(error)
            log.warning("%d messages wait to be stored: %s", len(self._unsaved), error)

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Have these messages for a history: forget from where it says something else."""
        said = self._said()
        pairs = zip(said, messages, strict=False)
        same = len(list(takewhile(lambda pair: chat_message_of(pair[0]) == pair[1], pairs)))
        for message in said[same:]:
            self.memory.forget(
                user=self.user, session=self.session, message=message.message_id, scrub=False
            )
        self.put_messages(messages[same:])

    def reset(self) -> None:
        """Forget the session and what was derived of it; its bytes go with `Memory.scrub`."""
        self._unsaved = []
        self.memory.forget(user=self.user, session=self.session, scrub=False)

    def _said(self, last: int | None = None) -> list[Message]:
        try:
            said = self.memory.history(
                user=self.user, agent=self.agent, session=self.session, last=last
            )
        except StoreError as error:
            self.failed = str(error)
            log.warning("the conversation goes on without its history: %s", error)
            said = []
        return said + self._unsaved

    def _context(self, question: Message, beside: int) -> list[dict[str, Any]]:
        window: Window = self.window
        left = max(window.max_tokens - beside, (window.answer_tokens or 0) + 1)
        return self.memory.context(
            question,
            user=self.user,
            agent=self.agent,
            session=self.session,
            window=replace(window, max_tokens=left),
            deadline_ms=self.deadline_ms,
        ).messages


class MemoristRetriever(BaseRetriever):
    """What is remembered of a user as nodes, best first, each with its source and its reason.

        retriever = MemoristRetriever(memory, user="ada", k=5, kind=("memory", "fact"))

    `only` narrows as `Memory.recall` does. Where memory fails, there are no nodes and a warning
    is logged: the query engine goes on.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user: str,
        agent: str | None = None,
        k: int = 5,
        deadline_ms: float | None = 50.0,
        **only: Any,
    ) -> None:
        memory.scope(user=user, agent=agent)
        Filters.of(**only)
        self._memory = memory
        self._named: dict[str, Any] = {"user": user, "agent": agent, **only}
        self._named |= {"limit": k, "deadline_ms": deadline_ms}
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        try:
            found = self._memory.recall(query_bundle.query_str, **self._named)
        except (StoreError, ProviderError) as error:
            log.warning("nothing was recalled for the query: %s", error)
            return []
        return [_node(hit) for hit in found.hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await to_thread(self._retrieve, query_bundle)


def message_of(message: ChatMessage) -> Message:
    """The message to store; what it has no place for is kept beside it."""
    role = _ROLES.get(message.role.value, message.role.value)
    text = findable(message.content or "")
    usual = message == ChatMessage(role=role, content=text)
    form = json.dumps(message.model_dump(mode="json", fallback=str), ensure_ascii=False)
    blocks, more = message.blocks, message.additional_kwargs
    calls = [call for block in blocks if isinstance(block, ToolCallBlock) for call in _call(block)]
    call_id = more.get("tool_call_id")
    return Message(
        role,
        text or None,
        tool_calls=calls or _older_calls(more.get("tool_calls")),
        tool_call_id=call_id if isinstance(call_id, str) else None,
        images=[_url(block) for block in blocks if isinstance(block, ImageBlock)],
        structured_data=None if usual else {KEPT: findable(form)},
    )


def chat_message_of(message: Message) -> ChatMessage:
    """The chat message that a message was made of, or else one that says the same."""
    try:
        return ChatMessage.model_validate_json((message.structured_data or {})[KEPT])
    except (KeyError, ValidationError):  # another door's, or only made to look like ours
        return of_wire(message.to_wire())


def of_wire(wire: dict[str, Any]) -> ChatMessage:
    """A message in chat-completions form as LlamaIndex has it."""
    content: Any = wire.get("content") or []
    parts = [{"text": content}] if isinstance(content, str) else content
    blocks: list[Any] = [_block(part) for part in parts]
    for call in wire.get("tool_calls", ()):
        inner = call.get("function") or call["custom"]
        given = inner.get("arguments", inner.get("input"))
        blocks.append(
            ToolCallBlock(tool_call_id=call["id"], tool_name=inner["name"], tool_kwargs=given)
        )
    more = {name: wire[name] for name in ("tool_call_id", "name") if name in wire}
    return ChatMessage(role=wire["role"], blocks=blocks, additional_kwargs=more)


def _before(question: str, wires: list[dict[str, Any]]) -> list[ChatMessage]:
    """All but the question, which whoever asks will put at the end."""
    *past, asked = wires
    recalled = str(asked["content"]).removesuffix(question).removesuffix(f"{QUESTION_INTRO}\n")
    above = [{"role": "user", "content": recalled.strip()}] if recalled.strip() else []
    return [of_wire(wire) for wire in (*past, *above)]


def _block(part: Any) -> TextBlock | ImageBlock:
    if isinstance(part, dict) and part.get("type") == "image_url":
        return ImageBlock(url=part["image_url"]["url"])
    return TextBlock(text=part["text"] if isinstance(part, dict) else str(part))


def _call(block: ToolCallBlock) -> list[ToolCallMsg]:
    given = block.tool_kwargs
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    told = {"id": block.tool_call_id, "name": block.tool_name, "arguments": findable(arguments)}
    return [ToolCallMsg.from_dict(told)]


def _older_calls(calls: Any) -> list[ToolCallMsg]:
    """Calls as models had them before there were blocks, in OpenAI's form."""
    try:
        dumped = [it.model_dump() if hasattr(it, "model_dump") else it for it in calls or ()]
        return [ToolCallMsg.from_dict(call) for call in dumped]
    except (AttributeError, TypeError, MessageError):  # anybody's, in any shape: kept, not read
        return []


def _url(image: ImageBlock) -> str:
    if image.image:
        kind = image.image_mimetype or "image/png"
        return f"data:{kind};base64,{bytes(image.image).decode()}"  # type: ignore[arg-type]
    return str(image.url or image.path)


def _node(hit: Hit) -> NodeWithScore:
    told = {
        "kind": hit.kind,
        "when": hit.created_at.isoformat(),
        "session": hit.session_id,
        "role": hit.role,
        "speaker": hit.speaker,
        "why": str(hit.why),
    }
    node = TextNode(
        id_=hit.id,
        text=hit.text,
        metadata={name: it for name, it in told.items() if it},
        excluded_llm_metadata_keys=["kind", "session", "why"],
        excluded_embed_metadata_keys=[*told],
    )
    return NodeWithScore(node=node, score=hit.score)
