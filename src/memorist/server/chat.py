"""The chat runtime: the server's agent, and how one question of a conversation is answered."""

import asyncio
import logging
import threading
from asyncio import to_thread
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from memorist import errors
from memorist.agents.overflow import is_overflow
from memorist.agents.toolbox import Toolbox
from memorist.chat import Chat
from memorist.config import Settings
from memorist.context.tokens import TokenCounter
from memorist.context.window import Context, Window
from memorist.forks import fork_safe
from memorist.library import Library
from memorist.memory import Memory
from memorist.providers.images import refuse_image
from memorist.providers.opening import open_langchain_model, openai_name
from memorist.records.log import LogEntry
from memorist.records.message import Message
from memorist.records.query import RECALL_DEADLINE_MS, Recall
from memorist.records.values import check_text, new_id, reply_id
from memorist.runtime import window_of

if TYPE_CHECKING:  # LangChain is needed only where there is a model
    from memorist.agents.react import ReactAgent

SYSTEM = "You are a helpful assistant with a lasting memory of this user."
TOOLS = ("recall", "store_fact", "manage_long_term_memory", "retrieve_context")
WINDOW = Window(max_tokens=Settings.model_window, answer_tokens=1_000)
MODEL_TIMEOUT_S = 60.0  # of silence
MOST_TENANTS = 256  # whose agents are kept: making one takes 25 ms
MOST_QUEUED = 256  # events that a slow reader has not taken yet
MOST_HITS = 20
REPLIES_PER_LOOK = 32  # replies looked up at once: each round of tool calls is one too
BUSY = "this question is being answered at this moment; wait, then send it again"
CURE = "; shorten the message, or fit MEMORIST_MODEL_WINDOW to what the model takes in"

log = logging.getLogger("memorist.server")
question_id: ContextVar[str | None] = ContextVar("question_id", default=None)
"""The id of the question that the running task answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """The agent's prompt, window and memory tools, and the time limits of a chat."""

    system: str = SYSTEM
    window: Window = WINDOW
    tools: Sequence[str] = TOOLS
    deadline_ms: float | None = RECALL_DEADLINE_MS
    read_image: Callable[[str], str] = refuse_image
    longest_s: float = 600.0
    heartbeat_s: float = 15.0  # after which a stream without events sends a comment
    patience_s: float = 10.0  # to wait for the running answer to a question that is sent again


DEFAULT = ChatSettings()


class ChatQuestion(NamedTuple):
    """A message to be answered, and its conversation; `is_known`: it may be stored already."""

    chat: Chat
    message: Message
    is_known: bool = False

    @property
    def id(self) -> str:
        return self.message.message_id

    @property
    def key(self) -> tuple[str, str, str]:
        """Unique among all questions."""
        return self.chat.session.scope.owner, self.chat.id, self.id


class ReplyState(NamedTuple):
    """How far a question is answered: the number of the next reply, and the whole answer."""

    next_number: int = 0
    answer: Message | None = None


def chat_question(
    memory: Memory,
    text: str | None,
    asked_id: str | None,
    *,
    user: str,
    agent: str | None = None,
    session: str | None = None,
) -> ChatQuestion:
    """The message to be answered, in its conversation; without a text, the stored one of an id."""
    if text is None and asked_id is None:
        raise errors.InvalidError("message is missing; or give the asked_id of a stored one")
    if text is not None and not text.strip():
        raise errors.InvalidError("message must say something")
    # With a text, it may be stored in another session than the one that is active by now.
    place = {"agent": agent, "session": session} if text is None else {}
    scope = memory.scope(user=user, **place)
    entries = memory.messages.get(scope, [asked_id]) if asked_id is not None else []
    if entries:
        return _stored_question(memory, entries, text, user=user, agent=agent)
    if text is None:
        raise errors.NotFoundError("asked_id names no message of this user, agent and session")
    message = Message("user", text, message_id=new_id() if asked_id is None else asked_id)
    chat = memory.session(user=user, agent=agent, claimed=session)
    return ChatQuestion(chat, message, is_known=asked_id is not None)


def _stored_question(
    memory: Memory, entries: Sequence[LogEntry], text: str | None, *, user: str, agent: str | None
) -> ChatQuestion:
    """A stored message that is asked again, by its id; with a text, it must say that."""
    if text is None and len(entries) > 1:
        raise errors.ConflictError(
            "several sessions hold a message with this id; name the session_id"
        )
    message = entries[0].message
    [stored_in] = memory.sessions(user=user, session=entries[0].session_id)
    found = message.content, message.role, stored_in.scope.agent
    if text is not None and found != (text, "user", agent or ""):
        raise errors.ConflictError("this asked_id is the id of another message")
    is_text = message.role == "user" and isinstance(message.content, str) and not message.images
    if text is None and not is_text:
        raise errors.InvalidError("asked_id names a message that is no text of the user's")
    return ChatQuestion(Chat(memory, stored_in), message, is_known=True)


def reply_state(memory: Memory, question: ChatQuestion) -> ReplyState:
    """What was replied so far; a reply that broke off is to be said again under its number."""
    last, reply = -1, Message("assistant", "", unfinished=False)
    for first in count(0, REPLIES_PER_LOOK):
        numbers = {reply_id(question.id, first + n): first + n for n in range(REPLIES_PER_LOOK)}
        entries = memory.messages.get(question.chat.session.scope, list(numbers))
        for message in (entry.message for entry in entries):
            if (number := numbers[message.message_id]) > last:
                last, reply = number, message
        if not entries:
            break
    if last < 0 or reply.unfinished:
        return ReplyState(max(last, 0))
    return ReplyState(last + 1, None if reply.tool_calls else reply)


@dataclass
class ChatRuntime:
    """Answers questions with a model, or without one says what it would have been sent."""

    model: Any = None
    settings: ChatSettings = DEFAULT
    larger_model: Any = None
    _running: dict[tuple[str, str, str], asyncio.Task[None]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=lambda: fork_safe(threading.Lock()))

    def __post_init__(self) -> None:
        self._agent = lru_cache(MOST_TENANTS)(self._make_agent)

    @classmethod
    def of(cls, settings: Settings, default: ChatSettings = DEFAULT) -> Self:
        """With the model, window and prompt of the settings; ConfigError where they are wrong."""
        with errors.naming_setting("MEMORIST_LARGER_MODEL"):
            larger = open_chat_model(replace(settings, model=settings.larger_model))
        with errors.naming_setting("MEMORIST_MODEL"):
            model = open_chat_model(settings)
        return cls(model, chat_settings(settings, default), larger)

    async def earlier_reply(self, memory: Memory, question: ChatQuestion) -> ReplyState:
        """What was replied to a question that is sent again; a running answer is waited for."""
        if not question.is_known:
            return ReplyState()
        if (running := self._running.get(question.key)) is not None:
            await asyncio.wait({running}, timeout=self.settings.patience_s)
        if question.key in self._running:
            raise errors.ConflictError(BUSY)
        return await to_thread(reply_state, memory, question)

    def preview(self, question: ChatQuestion) -> Context:
        """Store the question, and return what a model would be sent."""
        question.chat.remember(question.message)
        settings = self.settings
        try:
            context = question.chat.context(
                question.message,
                system=settings.system,
                window=settings.window,
                deadline_ms=settings.deadline_ms,
                read_image=settings.read_image,
            )
        except errors.WindowError:
            text = f"the message does not fit a window of {settings.window.max_tokens:,} tokens"
            raise errors.WindowError(text + CURE) from None
        return replace(context, recall=best_of(context.recall, question.id))

    async def answer(
        self, memory: Memory, question: ChatQuestion, next_number: int = 0
    ) -> AsyncGenerator[Any, None]:
        """The agent's events; a reader that stops ends the work, and what was said is stored."""
        if question.key in self._running:
            raise errors.ConflictError(BUSY)
        queue: asyncio.Queue[Any] = asyncio.Queue(MOST_QUEUED)
        task = asyncio.create_task(self._run(memory, question, next_number, queue))
        self._running[question.key] = task
        task.add_done_callback(lambda _: self._running.pop(question.key, None))
        try:
            while not isinstance(event := await queue.get(), BaseException | None):
                yield event
            if event is not None:
                raise event
        finally:
            task.cancel()

    async def close(self) -> None:
        """End all running answers, and wait until what was said is stored."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(
        self, memory: Memory, question: ChatQuestion, next_number: int, queue: asyncio.Queue[Any]
    ) -> None:
        """Put the agent's events into the queue, then None or the error."""
        scope, end = question.chat.session.scope, None
        try:
            async with asyncio.timeout(self.settings.longest_s):
                agent = await to_thread(self._agent_of, memory)
                question_id.set(question.id)  # of this task, and of all that it starts
                events = agent.astream(
                    str(question.message.content),
                    question.chat.id,
                    user=scope.user,
                    agent=scope.agent,
                    asked_id=question.id,
                    next_reply=next_number,
                )
                async with aclosing(events):
                    async for event in events:
                        await queue.put(event)
        except Exception as error:  # noqa: BLE001 - whatever the model or its client does
            end = error if isinstance(error, errors.MemoristError) else _model_failure(error)
        await queue.put(end)

    def _agent_of(self, memory: Memory) -> "ReactAgent":
        """The one agent of a tenant, which keeps what could not be stored yet."""
        with self._lock:
            return self._agent(memory)

    def _make_agent(self, memory: Memory) -> "ReactAgent":
        from memorist.agents.react import ReactAgent
        from memorist.agents.tools import memory_tools

        settings, tools = self.settings, list[Any]()
        if settings.tools:
            box = ChatToolbox(memory, window=settings.window)
            tools = memory_tools(box, only=settings.tools, system=settings.system)
        return ReactAgent(
            self.model,
            memory,
            agent=None,
            tools=tools,
            system=settings.system,
            window=settings.window,
            larger_model=self.larger_model,
            deadline_ms=settings.deadline_ms,
            store_partial_replies=True,
            stream_recall=True,
            read_image=settings.read_image,
        )


class ChatToolbox(Toolbox):
    """The toolbox of the user who asks; recall leaves out the very question that is answered."""

    __slots__ = ()

    def find(self, query: str, limit: int) -> Recall:
        recall = super().find(query, limit + 1)
        hits = [hit for hit in recall.hits if hit.id != question_id.get()]
        return replace(recall, hits=tuple(hits[:limit]))

    def articles(self) -> Library:
        return Library(self.memory, user=self.user)


def best_of(recall: Recall, asked_id: str) -> Recall:
    """The best hits of a recall, without the question itself."""
    hits = [hit for hit in recall.hits if hit.id != asked_id]
    return replace(recall, hits=tuple(hits[:MOST_HITS]))


def _model_failure(error: Exception) -> errors.MemoristError:
    """The error of a model as ours, without its text, which may quote the user's."""
    kind, status = type(error).__name__, getattr(error, "status_code", None)
    log.warning("the model failed: %s %s", kind, status or "")
    if isinstance(error, TimeoutError):
        return errors.ProviderError("the model took too long to answer")
    if is_overflow(error):
        return errors.WindowError(f"the model takes in less than it was sent{CURE}")
    reason = f"{kind}, status {status}" if isinstance(status, int) else kind
    return errors.ProviderError(
        f"the model failed ({reason}); ask again by the asked_id that is told beside this",
        status=status if isinstance(status, int) else None,
    )


def open_chat_model(settings: Settings) -> Any | None:
    """The LangChain model of MEMORIST_MODEL, _MODEL_URL and _MODEL_KEY, if one is named."""
    if not settings.model:
        return None
    model = openai_name(settings.model, settings.model_url)
    if model is None:
        return open_langchain_model(settings.model, settings.model_key, extra="chat")
    with errors.needs_extra("chat"):
        chat_openai = import_module("langchain_openai").ChatOpenAI
    options: dict[str, Any] = {"timeout": MODEL_TIMEOUT_S, "max_retries": 1}
    if settings.model_url:  # a local server needs no key, but the client insists on one
        options |= {"base_url": settings.model_url, "api_key": settings.model_key or "none"}
        options["use_responses_api"] = False  # which few servers but OpenAI's own have
    elif settings.model_key:
        options["api_key"] = settings.model_key
    try:
        return chat_openai(model=model, **options)
    except Exception as error:  # noqa: BLE001 - the client's own kinds, whose text may hold the key
        raise errors.ConfigError(
            f"the model cannot be opened ({type(error).__name__}); see MEMORIST_MODEL, "
            "MEMORIST_MODEL_URL and MEMORIST_MODEL_KEY"
        ) from None


def chat_settings(settings: Settings, default: ChatSettings = DEFAULT) -> ChatSettings:
    """The default with the window, the prompt and the deadline of the settings, if they are set."""
    window = window_of(default.window, settings)
    window = replace(window, model=window.model or settings.model.rpartition(":")[2])
    if (size := settings.model_window) != Settings.model_window:
        answer_tokens = min(window.reserved, size // 4)
        window = replace(window, max_tokens=size, answer_tokens=answer_tokens)
    made = replace(default, window=window)
    if (deadline_ms := settings.recall_deadline_ms) != Settings.recall_deadline_ms:
        made = replace(made, deadline_ms=deadline_ms)
    if not (system := settings.system).strip():
        return made
    try:
        check_text(system, "MEMORIST_SYSTEM", errors.InvalidError)
    except errors.InvalidError as error:
        raise errors.ConfigError(str(error)) from None
    size = TokenCounter(window.counts_with()).request([{"role": "system", "content": system}])
    if size > window.budget // 2:
        raise errors.ConfigError(
            f"MEMORIST_SYSTEM takes {size:,} tokens, more than half of the window; shorten it "
            "or raise MEMORIST_MODEL_WINDOW"
        )
    return replace(made, system=system)
