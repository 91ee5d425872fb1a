"""`memorist chat`: talk to an agent that remembers, or see what a model would be sent."""

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from rich.text import Text

from memorist.chat import Chat
from memorist.cli import options as opt
from memorist.cli import render
from memorist.cli.context import show_messages, show_receipt
from memorist.cli.render import console, escape_controls, remark, safe_text
from memorist.config import Settings
from memorist.errors import ProviderError, WindowError
from memorist.memory import Memory
from memorist.providers.images import encode_image
from memorist.records.message import Message
from memorist.records.query import Recall
from memorist.runtime import open_extraction
from memorist.server.chat import ChatQuestion, ChatRuntime, ChatSettings, best_of

PROMPT = "› "
SHOWN_HITS = 3
SETTINGS = ChatSettings(deadline_ms=5_000, read_image=encode_image)  # the first recall loads much


def chat(
    user: opt.User = None,
    agent: opt.Agent = None,
    session: opt.SessionId = None,
    new: bool = typer.Option(False, "--new", help="Begin a new session."),
    db: opt.Database = None,
) -> None:
    """Talk to an agent that remembers; without a model, see what one would be sent.

    MEMORIST_MODEL names the model. A line is a message; Ctrl-C stops an answer, Ctrl-D ends.
    """
    settings = Settings.from_environment()
    agent = settings.agent if agent is None and session is None else agent
    runtime = ChatRuntime.of(settings, SETTINGS)
    opened = opt.open_memory(db, user, extraction=open_extraction(settings))
    with _errors_only(), opened as (memory, user):
        begun = new or (session and not memory.sessions(user=user, session=session))
        conversation = memory.session(user=user, agent=agent, id=session, new=new)
        model = settings.model or "no model: set MEMORIST_MODEL to have answers"
        remark(f"{'a new session' if begun else 'session'} {conversation.id} of {user} · {model}")
        with asyncio.Runner() as runner:
            for line in _lines(conversation):
                question = ChatQuestion(conversation, Message("user", line))
                try:
                    runner.run(_turn(memory, runtime, question))
                except (ProviderError, WindowError) as error:  # the next question may do better
                    render.warn(str(error))
                except KeyboardInterrupt:
                    remark("\nstopped; what was said so far is stored")


@contextmanager
def _errors_only() -> Iterator[None]:
    """No warnings in the log: what fails is shown below its question."""
    log = logging.getLogger("memorist")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _lines(conversation: Chat) -> Iterator[str]:
    """What the user types, until the end of the input; earlier messages are a key press away."""
    if not sys.stdin.isatty():
        yield from filter(None, map(str.strip, opt.read_stdin().splitlines()))
        return
    with suppress(ImportError):  # Windows has none
        import readline

        for message in conversation.history(last=100):
            if message.role == "user":
                readline.add_history(message.text)
    with suppress(EOFError):
        while True:
            if line := console.input(f"[bold cyan]{PROMPT}[/]").strip():
                yield line


async def _turn(memory: Memory, runtime: ChatRuntime, question: ChatQuestion) -> None:
    """Answer a question, or show what a model would be sent for it."""
    if runtime.model is None:
        context = runtime.preview(question)
        _show_recalled(context.recall)
        show_messages(context.messages)
        show_receipt(context.receipt, {}, kept=True)
        return
    try:
        async for event in runtime.answer(memory, question):
            _show(event, question.id)
    finally:
        await runtime.close()


def _show(event: Any, asked_id: str) -> None:
    from memorist.agents import react  # here: LangChain is there, as the model is

    match event:
        case react.Recalled(recall):
            _show_recalled(best_of(recall, asked_id))
        case react.Token(text):
            console.out(escape_controls(text), end="", highlight=False)
        case react.ToolResult(name, arguments):
            remark(f"{name} {', '.join(map(str, arguments.values()))}")
        case react.Response(warnings=warnings):
            console.print("\n")
            for warning in warnings:
                render.warn(warning)


def _show_recalled(recall: Recall) -> None:
    """The best of what was recalled, each on one line, and what of it is over."""
    for hit in recall.hits[:SHOWN_HITS]:
        over = (f"{hit.over}: " if hit.over else "", "yellow")
        line = Text.assemble("  ", over, safe_text(" ".join(hit.text.split()), "dim"))
        console.print(line, no_wrap=True, overflow="ellipsis")
    render.warn_incomplete(recall.late, recall.failed)
