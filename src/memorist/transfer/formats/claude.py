"""Claude's data export: `conversations.json`, with projects and Claude's own memory beside it.

There, an answer and the results of its tools are one message.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from memorist.transfer.content import Loose, Part, branch, chats, left_out, named, said, turns
from memorist.transfer.items import Document, Item, stable_id
from memorist.transfer.source import Source

name = "claude"
title = "Claude data export"
KEY = re.compile(rb'"chat_messages"\s*:|"sender"\s*:\s*"human"')
ROLES = {"human": "user", "assistant": "assistant"}
MESSAGES = ("chat_messages", "messages")  # in newer and in older exports


def recognises(source: Source) -> bool:
    return any(KEY.search(source.head(file)) for file in chats(source))


def read(source: Source) -> Iterator[Item]:
    shared = sum(1 for file in named(source, "users.json") for _ in source.array(file)) > 1
    for item in _items(source, shared=shared):
        if shared and isinstance(item, Document):
            yield left_out(item.uri, "other_people")
        else:
            yield item


def _items(source: Source, *, shared: bool) -> Iterator[Item]:
    for file in chats(source):
        for place, value in source.array(file):
            yield from _conversation(place, Loose.of(value), shared=shared)
    for kind, documents in (("projects", _project), ("memories", _memory)):
        for file in named(source, f"{kind}.json", f"{kind}/*.json"):
            for place, value in source.array(file):
                yield from documents(place, Loose.of(value))


def _conversation(place: str, conversation: Loose, *, shared: bool) -> Iterator[Item]:
    """The branch that ends with the newest message; in an export of several people, its owner's."""
    session = conversation.text("uuid") or stable_id(place)
    listed = next((conversation.each(key) for key in MESSAGES if key in conversation), [])
    messages = {it.text("uuid") or f"{session}/{n}": it for n, it in enumerate(listed)}
    owner = conversation.below("account").text("uuid") or None
    more = {"title": conversation.text("name") or None, "user": owner if shared else None}
    at = conversation.date("created_at")
    dates = {id_: it.date("created_at") for id_, it in messages.items()}
    parents = {id_: it.text("parent_message_uuid") for id_, it in messages.items()}
    path = branch(parents, dates, "") if any(parents.values()) else list(messages)
    for id_ in path:
        message, at = messages.pop(id_), dates[id_] or at
        yield from turns(place, _parts(message, id_, at), session, name, **more)
        yield from _attached(message, id_, at)
    yield from (left_out(place, "branch") for _ in messages)


def _parts(message: Loose, id_: str, at: datetime | None) -> Iterator[Part]:
    blocks = message.each("content") if message.get("content") else [message]
    for it in message.each("attachments"):  # a long text that was pasted has no name
        file = it.text("file_name")
        blocks.append(Loose.of(f"[file: {file}]" if file else it.text("extracted_content")))
    for it in message.each("files") or message.each("files_v2"):
        blocks.append(Loose.of(f"[file: {it.text('file_name')}]"))
        yield "file"
    role = ROLES.get(message.text("sender"))
    yield from said(role, blocks, id_, at) if role else ["unknown"]


def _attached(message: Loose, id_: str, at: datetime | None) -> Iterator[Item]:
    for number, it in enumerate(message.each("attachments")):
        file, text = it.text("file_name"), it.text("extracted_content")
        if file and text:
            yield Document(f"claude:attachment/{id_}/{number}", file, text, at)


def _project(place: str, project: Loose) -> Iterator[Item]:
    if project.get("is_starter_project") is True:
        yield left_out(place, "example")
        return
    home = f"claude:project/{project.text('uuid') or place}"
    heading = project.text("name") or "A project"
    if text := project.text("prompt_template"):
        yield Document(f"{home}/instructions", heading, text, project.date("created_at"))
    for number, it in enumerate(project.each("docs")):
        uri = f"{home}/{it.text('uuid') or number}"
        if text := it.text("content"):
            yield Document(uri, it.text("filename") or heading, text, it.date("created_at"))


def _memory(place: str, memory: Loose) -> Iterator[Item]:
    """What Claude itself remembered, of all conversations and of each project."""
    texts = Loose(memory.below("project_memories"))
    texts["all"] = memory.get("conversations_memory")
    for project in texts:
        if text := texts.text(project):
            yield Document(f"claude:memory/{project}", "What Claude remembered", text)
    yield from (left_out(place, "unknown") for _ in memory.each("memory_files"))
