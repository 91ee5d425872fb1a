"""Pydantic AI's door: `agent.run("Hi", message_history=await chat.load(), capabilities=[chat])`."""

from __future__ import annotations

import hashlib
import json
import logging
from asyncio import to_thread
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeVar

from memorist.agents.tool_schema import ToolSchema
from memorist.agents.toolbox import NAMES, Toolbox, tool_schemas
from memorist.errors import InvalidError, MemoristError, ProviderError, StoreError, needs_extra
from memorist.memory import Memory
from memorist.records.message import Message, ToolCallMsg, readable, without_orphan_results
from memorist.records.values import replace_unstorable
from memorist_adapters.remembered import DEADLINE_MS, remembered

with needs_extra("pydantic-ai", "memorist-adapters"):
    from pydantic import ValidationError
    from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        ImageUrl,
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult

KEPT = "pydantic_ai"  # where a message keeps what Pydantic AI knows besides the words
HITS = 8
TOOLS = tuple(name for name in NAMES if name not in ("store_session_message", "retrieve_context"))
_ROLES = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool"}

T = TypeVar("T")
log = logging.getLogger("memorist")


class MemoristMemory(AbstractCapability[Any]):
    """A conversation that lasts, for an agent that is told what is remembered of its user.

        chat = MemoristMemory(memory, user="ada", agent="tutor")
        result = await agent.run("Hi", message_history=await chat.load(), capabilities=[chat])

    Each message is stored before the model sees it, and the answer when it is there. Notes and
    memories are in the instructions of the requests only. With `k`, `load` gives the last k
    messages. `tools` are names of the toolbox's tools for the model, as `("recall",)`. Whatever
    the store does, the agent answers; `failed` says what it goes without, and why.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user: str,
        agent: str | None = None,
        session: str | None = None,
        k: int | None = None,
        tools: Sequence[str] = (),
    ) -> None:
        if session is None:
            session = memory.session(user=user, agent=agent).id
        self.session_id = session
        self.failed: dict[str, str] = {}
        self.deadline_ms: float | None = DEADLINE_MS  # for what is recalled; None waits
        self._memory = memory
        self._scope = memory.scope(user=user, agent=agent, session=session)
        self._k = k
        self._toolset: FunctionToolset[Any] | None = None
        if tools:
            box = Toolbox(memory, user=user, agent=agent, session=session)
            self._toolset = memory_toolset(box, only=tools)

    def messages(self) -> list[ModelMessage]:
        """The conversation so far, oldest first, as `message_history` takes it."""
        entries = self._memory.messages.list(self._scope, last=self._k)
        messages = [entry.message for entry in entries]
        return _joined(messages if self._k is None else without_orphan_results(messages))

    def add(self, messages: Iterable[ModelMessage]) -> None:
        """Store messages, as `result.new_messages()` gives them; those that are stored stay."""
        scope, made = self._scope, [messages_of(message) for message in messages]
        ids = [one.message_id for group in made for one in group]
        held = {entry.message.message_id for entry in self._memory.messages.get(scope, ids)}
        # One that is there in part is there: a framework's own remarks may have come later.
        fresh = [group for group in made if not any(one.message_id in held for one in group)]
        if said := [one for group in fresh for one in group]:
            self._memory.remember(said, **scope.names)

    def clear(self) -> None:
        """Forget the conversation and all derived from it; its bytes go with `Memory.scrub`."""
        self._memory.forget(user=self._scope.user, session=self.session_id, scrub=False)

    async def load(self) -> list[ModelMessage]:
        """`messages`, or none and a warning where the store does not answer."""
        return await self._try("history", self.messages, [])

    async def save(self, messages: Sequence[ModelMessage]) -> None:
        """`add`, or a warning where the store does not answer."""
        await self._try("remember", lambda: self.add(messages), None)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None  # it holds a memory, which no specification can

    def get_toolset(self) -> FunctionToolset[Any] | None:
        return self._toolset

    def get_instructions(self) -> Any:
        return self.instructions

    async def instructions(self, ctx: RunContext[Any]) -> str:
        """The notes and what is recalled for the prompt, without what the conversation holds."""
        prompt = ctx.prompt if isinstance(ctx.prompt, str) else _words(ctx.prompt or "")
        said = [one.text for message in ctx.messages for one in messages_of(message)]
        return await self._try("recall", lambda: self._told(prompt, [*said, prompt]), "")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Store what the model is about to see."""
        await self.save([one for one in ctx.messages if one.run_id == ctx.run_id])
        return request_context

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """Store the answer, and what could not be stored before."""
        await self.save(result.new_messages())
        return result

    def _told(self, prompt: str, said: Sequence[str]) -> str:
        scope = self._memory.scope(user=self._scope.user, agent=self._scope.agent)
        text, _ = remembered(
            self._memory,
            scope,
            prompt,
            said="\n".join(said),
            limit=HITS,
            deadline_ms=self.deadline_ms,
        )
        return text

    async def _try(self, what: str, work: Callable[[], T], otherwise: T) -> T:
        try:
            done = await to_thread(work)
        except (StoreError, ProviderError) as error:
            self.failed[what] = str(error)
            log.warning("the agent goes on without its memory (%s): %s", what, error)
            return otherwise
        self.failed.pop(what, None)
        return done


def messages_of(message: ModelMessage) -> list[Message]:
    """A request part by part, or a response, as messages that hold its words and keep the rest.

    Instructions are not kept: they may quote memories, which must be free to be forgotten.
    """
    [form] = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    form.pop("instructions", None)
    run, parts = form.get("run_id"), form["parts"]
    if isinstance(message, ModelResponse):
        return [_response(message, form, _id(run, form["timestamp"], parts))]
    ids = [_id(run, parts[:at].count(part), part) for at, part in enumerate(parts)]
    return [
        _request_part({**form, "parts": [part]}, ids[0], id_)
        for part, id_ in zip(parts, ids, strict=True)
    ]


def _id(*told: Any) -> str:
    """Parts say when they were made, so that they are told apart, and known again."""
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def _response(message: ModelResponse, form: dict[str, Any], id_: str) -> Message:
    places = [at for at, part in enumerate(form["parts"]) if part["part_kind"] == "text"]
    texts = [form["parts"][at]["content"] for at in places]
    words = replace_unstorable("\n".join(texts))
    calls = [
        ToolCallMsg(
            it.tool_call_id,
            it.tool_call_id,
            "function",
            it.tool_name,
            replace_unstorable(_arguments(it)),
        )
        for it in message.parts
        if isinstance(it, ToolCallPart)
    ]
    content = words if texts else None
    kept = _keep(form, id_, places[0] if texts == [words] else None)
    return Message("assistant", content, id_, tool_calls=calls, structured_data=kept)


def _arguments(call: ToolCallPart) -> str:
    """As Pydantic AI writes them, which itself would fail at half a character."""
    args = call.args_as_dict()
    return json.dumps(args, ensure_ascii=False, separators=(",", ":"), default=str)


def _request_part(form: dict[str, Any], group: str, id_: str) -> Message:
    [part] = form["parts"]
    content = part.get("content")
    words = replace_unstorable(content if isinstance(content, str) else _words(content))
    is_result = part["part_kind"] in ("tool-return", "retry-prompt") and part.get("tool_name")
    role = "tool" if is_result else _ROLES.get(part["part_kind"], "system")
    parts = content if isinstance(content, list) else []
    shown = [it for it in parts if isinstance(it, dict) and it.get("kind") == "image-url"]
    return Message(
        role,
        words,
        id_,
        structured_data=_keep(form, group, 0 if words == content else None),
        name=part.get("tool_name") if is_result else None,
        tool_call_id=part.get("tool_call_id") if is_result else None,
        images=[it["url"] for it in shown],
    )


def _words(content: Any) -> str:
    """What a part says: the texts of a prompt, or a tool's result as JSON."""
    if isinstance(content, Sequence) and not isinstance(content, str):
        texts = [it if isinstance(it, str) else _text_in(it) for it in content]
        if any(texts):
            return "\n".join(filter(None, texts))
    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)


def _text_in(part: Any) -> str:
    is_text = isinstance(part, Mapping) and part.get("kind") in ("text-content", "text")
    return str(part["content"]) if is_text else str(getattr(part, "content", ""))


def _keep(form: dict[str, Any], group: str, said: int | None) -> dict[str, Any]:
    """The form, without the words of the part that the message itself holds."""
    parts = [{**it, "content": ""} if at == said else it for at, it in enumerate(form["parts"])]
    kept = {"group": group, "said": said, "message": {**form, "parts": parts}}
    return {KEPT: json.dumps(kept)}  # in ASCII: any text can be kept so


def _joined(messages: Iterable[Message]) -> list[ModelMessage]:
    """The model messages that these were made of, or that say what another door's say."""
    made: list[ModelMessage] = []
    for _, group in groupby(messages, key=lambda one: _kept(one).get("group", one.message_id)):
        parts = list(group)
        forms = [form for one in parts if (form := _form(one)) is not None]
        if len(forms) < len(parts):
            made += [message for one in parts for message in _usual(one)]
            continue
        whole = {**forms[0], "parts": [part for form in forms for part in form["parts"]]}
        try:
            made += ModelMessagesTypeAdapter.validate_json(json.dumps([whole]))
        except ValidationError:  # another version's
            made += [message for one in parts for message in _usual(one)]
    return made


def _kept(message: Message) -> dict[str, Any]:
    kept = (message.structured_data or {}).get(KEPT)
    return json.loads(kept) if isinstance(kept, str) else {}


def _form(message: Message) -> dict[str, Any] | None:
    kept = _kept(message)
    form: dict[str, Any] | None = kept.get("message")
    if form is not None and kept["said"] is not None:
        form["parts"][kept["said"]]["content"] = readable(message.content)
    return form


def _usual(message: Message) -> Iterator[ModelMessage]:
    said, at = readable(message.content), message.created_at
    if message.role == "assistant":
        calls = [ToolCallPart(it.name, it.arguments, it.call_id) for it in message.tool_calls]
        yield ModelResponse([TextPart(said), *calls] if said else calls, timestamp=at)
    elif message.role == "tool":
        id_ = message.answered_call_id() or ""
        yield ModelRequest([ToolReturnPart(message.name or "tool", said, id_, timestamp=at)])
    elif message.role == "user":
        shown = [ImageUrl(url) for url in message.images]
        yield ModelRequest([UserPromptPart([said, *shown] if shown else said, timestamp=at)])
    else:
        yield ModelRequest([SystemPromptPart(said, timestamp=at)])


def memory_toolset(toolbox: Toolbox, *, only: Sequence[str] = ()) -> FunctionToolset[Any]:
    """The toolbox's tools, or those named by `only`, for `Agent(…, toolsets=[…])`."""
    if unknown := set(only) - set(TOOLS):
        raise InvalidError(f"{len(unknown)} of the names are no tools; these: {', '.join(TOOLS)}")
    toolbox = replace(toolbox, program=False)  # here a model calls it
    names = tuple(only) or TOOLS
    return FunctionToolset([_tool(toolbox, it) for it in tool_schemas() if it.name in names])


def _tool(toolbox: Toolbox, tool: ToolSchema) -> Tool[Any]:
    model = tool.model()

    async def run(**arguments: Any) -> Any:
        try:
            named = dict(model(**arguments))
            return await to_thread(getattr(toolbox, tool.name), **named)
        except ValidationError as error:  # what it says may be a user's: only where and what kind
            wrong = "; ".join(f"{it['loc']}: {it['type']}" for it in error.errors())
            raise ModelRetry(f"the arguments are wrong: {wrong}") from None
        except MemoristError as error:
            return f"The memory failed: {error}"

    return Tool.from_schema(run, tool.name, tool.description, model.model_json_schema())
