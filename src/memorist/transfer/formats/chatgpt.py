"""ChatGPT's data export: a zip or folder with `conversations.json`, or `conversations-000.json` ….

A conversation is a tree, because questions are edited and answers made again; what ChatGPT shows
is the branch that ends at `current_node`.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from memorist.records.message import ToolCallMsg
from memorist.transfer.content import LEFT_OUT, Loose, Part, branch, chats, message, turns
from memorist.transfer.items import Document, Item, stable_id
from memorist.transfer.source import Source

name = "chatgpt"
title = "ChatGPT data export"
KEY = re.compile(rb'"mapping"\s*:\s*\{')
ROLES = {"user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}
HIDDEN = "is_visually_hidden_from_conversation"


def recognises(source: Source) -> bool:
    return any(KEY.search(source.head(file)) for file in chats(source))


def read(source: Source) -> Iterator[Item]:
    known = set[str]()  # custom instructions, which many conversations repeat
    for file in chats(source):
        for place, value in source.array(file, "conversations"):
            yield from _conversation(place, Loose.of(value), known)


def _conversation(place: str, conversation: Loose, known: set[str]) -> Iterator[Item]:
    nodes = {id_: Loose.of(node) for id_, node in conversation.below("mapping").items()}
    messages = {id_: node.below("message") for id_, node in nodes.items()}
    parents = {id_: node.text("parent") for id_, node in nodes.items()}
    dates = {id_: it.date("create_time") for id_, it in messages.items()}
    session = conversation.text("conversation_id", "id") or stable_id(place)
    at, call_id = conversation.date("create_time"), ""
    for id_ in branch(parents, dates, conversation.text("current_node")):
        said, at = messages.pop(id_), dates[id_] or at
        yield from _instructions(said, at, known)
        parts, heading = _parts(said, id_, call_id, at), conversation.text("title") or None
        yield from turns(place, parts, session, name, title=heading)
        call_id = call_id if said.text("recipient") in ("", "all") else id_
    left = [it for it in messages.values() if it.below("author").text("role") in ROLES]
    yield from turns(place, ["branch" for _ in left], session, name)


def _instructions(said: Loose, at: datetime | None, known: set[str]) -> Iterator[Item]:
    """What the user told ChatGPT of themselves and of how to answer, once."""
    content, metadata = said.below("content"), said.below("metadata")
    given = Loose(content | metadata.below("user_context_message_data"))
    user = given.text("about_user_message", "user_profile")
    model = given.text("about_model_message", "user_instructions")
    text = "\n\n".join(filter(None, (user, model)))
    if text and text not in known:
        known.add(text)
        uri = f"chatgpt:instructions/{stable_id(text)}"
        yield Document(uri, "Custom instructions for ChatGPT", text, at)


def _parts(said: Loose, id_: str, call_id: str, at: datetime | None) -> Iterator[Part]:
    content, metadata, author = (said.below(key) for key in ("content", "metadata", "author"))
    parts = content.each("parts") if "parts" in content else [content]
    names = {it.text("id"): it.text("name") for it in metadata.each("attachments") if it.text("id")}
    texts = [_text(part, names) for part in parts] + [f"[file: {it}]" for it in names.values()]
    text, kind = "\n".join(filter(None, texts)), content.text("content_type")
    role = ROLES.get(author.text("role"))
    if kind in LEFT_OUT["chatgpt"]:
        yield LEFT_OUT["chatgpt"][kind]
    elif not text and kind not in LEFT_OUT["empty"]["chatgpt"]:
        yield "unknown"
    elif text and (role is None or said.get("weight") == 0 or metadata.get(HIDDEN)):
        yield "added"
    elif text and role:
        yield from ["file"] * (sum("asset_pointer" in part for part in parts) + len(names))
        tool = said.text("recipient") or "all"
        if role == "assistant" and tool != "all":
            form = "function" if text.lstrip().startswith("{") else "custom"  # JSON, or else code
            call = ToolCallMsg(id_, id_, form, tool, text)
            yield message(role, "", id_, at, tool_calls=[call])
        elif role == "tool":
            more = {"name": author.text("name") or None, "tool_call_id": call_id or None}
            yield message(role, text, id_, at, **more)
        else:
            yield message(role, text, id_, at)


def _text(part: Loose, names: dict[str, str]) -> str:
    """What a part of a message says; a file's name is taken out of those of the attached."""
    if pointer := part.text("asset_pointer"):
        kind = part.text("content_type").removesuffix("_asset_pointer")
        return f"[{kind}: {names.pop(pointer.rpartition('//')[2], pointer)}]"
    says = part.text("text", "result", "content", "summary")
    return "\n".join(filter(None, (part.text("title"), part.text("url"), says)))
