"""Messages as chat APIs take them: the chat-completions form, in blocks, and Anthropic's."""

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorist.context.quote import quoted
from memorist.context.tokens import TokenCounter
from memorist.errors import ImageError
from memorist.providers.images import ReadImage
from memorist.records.json_values import refuse_constant
from memorist.records.log import LogEntry
from memorist.records.message import Message, readable

ChatMessage = dict[str, Any]

UNREADABLE = "(an image that cannot be read)"
SHOWN = "(an image)"
NO_RESULT = "(no result was recorded)"
LATE_RESULT = "A tool's result, quoted:"
_NOT_IN_A_NAME = re.compile(r"[^\w-]+")


def to_chat_message(message: Message, read_image: ReadImage | None = None) -> ChatMessage | None:
    """The message without what an API would refuse; None if nothing remains.

    Only users may send images: another role's are replaced by a remark. Names have no spaces. A
    content part of a kind that not every API knows becomes text.
    """
    if message.tool_calls and message.role != "assistant":  # others may not call tools
        message = message.changed(tool_calls=())
    sent = message.to_wire()
    if message.agent_calls and not message.content:
        sent["content"] = message.text
    content = _content(sent["content"], message.role, read_image)
    is_empty = not (content.strip() if isinstance(content, str) else content)
    if is_empty and not message.tool_calls and message.role != "tool":
        return None
    sent["content"] = None if is_empty and message.role != "tool" else content
    if message.name is not None:
        sent["name"] = _NOT_IN_A_NAME.sub("_", message.name)[:64] or "_"
    if message.tool_calls:  # an id twice would ask for its result twice
        unique = {call["id"]: call for call in reversed(sent["tool_calls"])}
        sent["tool_calls"] = list(reversed(unique.values()))
    return sent


def _content(content: Any, role: str, read_image: ReadImage | None) -> Any:
    if not isinstance(content, list):
        return content or ""
    parts = [_part(part, role, read_image) for part in content]
    parts = [part for part in parts if part["type"] != "text" or part["text"].strip()]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(part: Any, role: str, read_image: ReadImage | None) -> ChatMessage:
    if isinstance(part, Mapping) and part.get("type") == "image_url":
        image = _image(part.get("image_url"), read_image) if role == "user" else None
        if image is not None:
            return image
        text = UNREADABLE if role == "user" else SHOWN
    elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
        text = part["text"]
    else:
        text = readable(part)
    return {"type": "text", "text": text}


def _image(image: Any, read_image: ReadImage | None) -> ChatMessage | None:
    fields = image if isinstance(image, Mapping) else {"url": image}
    url = fields.get("url")
    if isinstance(url, str) and url and not url.startswith(("data:", "http://", "https://")):
        try:
            url = read_image(url) if read_image is not None else ""
        except ImageError:
            return None
    if not isinstance(url, str) or not url:
        return None
    detail = {"detail": fields["detail"]} if "detail" in fields else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


@dataclass(slots=True)
class Block:
    """Messages that stay together: one message, or tool calls and their results."""

    messages: list[ChatMessage]
    ids: list[str]
    tokens: int = -1  # not counted yet

    @property
    def role(self) -> str:
        return str(self.messages[0]["role"])


def blocks_of(
    entries: Sequence[LogEntry],
    counter: TokenCounter,
    read_image: ReadImage | None = None,
    counts: Sequence[int] | None = None,
) -> list[Block]:
    """Messages as blocks, oldest first, without empty ones, which cannot be sent.

    A result whose call is missing is sent as a quotation; a call without a result gets one that
    says so. `counts` are the tokens of the messages, where they are known.
    """
    blocks: list[Block] = []
    waiting: dict[str, tuple[Block, int]] = {}  # by the id of the call: where its result goes
    if counts is None:
        counts = counter.messages([entry.message for entry in entries])  # in one go
    for message, tokens in zip((entry.message for entry in entries), counts, strict=True):
        id_, is_result = message.message_id, message.role == "tool"
        if _is_plain(message):  # as most are: thousands may go into a large window
            same = {"role": message.role, "content": message.content}
            blocks.append(Block([same], [id_], tokens))
        elif (sent := to_chat_message(message, read_image)) is None:
            continue
        elif is_result and (answers := message.answered_call_id() or "") in waiting:
            block, place = waiting.pop(answers)
            block.messages[place], block.ids[place] = sent, id_
        elif is_result and message.text.strip():  # late, or its call is in a summary
            quotation = f"{LATE_RESULT}\n{quoted(message.text)}"
            blocks.append(Block([{"role": "user", "content": quotation}], [id_]))
        elif not is_result:
            block = Block([sent], [id_])
            blocks.append(block)
            for call in sent.get("tool_calls", ()):
                waiting[call["id"]] = block, len(block.messages)
                missing = {"role": "tool", "tool_call_id": call["id"], "content": NO_RESULT}
                block.messages.append(missing)
                block.ids.append("")
    for block in blocks:
        if block.tokens < 0:
            block.ids = list(filter(None, block.ids))
            block.tokens = sum(map(counter.chat_message, block.messages))
    return blocks


def _is_plain(message: Message) -> bool:
    others = message.tool_calls or message.images or message.agent_calls or message.name
    is_text = message.role != "tool" and type(message.content) is str
    return is_text and not others and bool(str(message.content).strip())


_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,(.*)", re.DOTALL)
_NOT_IN_AN_ID = re.compile(r"[^a-zA-Z0-9_-]")


def anthropic_form(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    """`system` and `messages` for Anthropic's API: tool results in user messages, no role twice."""
    system = [str(message["content"]) for message in messages if message["role"] == "system"]
    turns: list[dict[str, Any]] = []
    ids: dict[str, str] = {}  # of the calls, as Anthropic accepts them
    used: dict[str, int] = {}  # and the last number of each
    for message in messages:
        if message["role"] == "system":
            continue
        for call in message.get("tool_calls", ()):
            ids[call["id"]] = _unused_id(call["id"], used)
        role = "assistant" if message["role"] == "assistant" else "user"
        parts = _anthropic_parts(message, ids)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += parts
        else:
            turns.append({"role": role, "content": parts})
    return {"system": "\n\n".join(system), "messages": turns}


def _unused_id(call_id: str, used: dict[str, int]) -> str:
    """The id in letters, digits, `_` and `-`, with a number where it is used already."""
    name = plain = _NOT_IN_AN_ID.sub("_", call_id) or "call"
    while name in used:
        used[plain] += 1
        name = f"{plain}_{used[plain]}"
    used[name] = 1
    return name


def _anthropic_parts(message: ChatMessage, ids: Mapping[str, str]) -> list[dict[str, Any]]:
    content = message["content"] or ()
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content.strip() else []
    parts = [_anthropic_image(it) if it["type"] == "image_url" else it for it in content]
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": ids[message["tool_call_id"]]}
        return [{**result, "content": parts} if parts else result]
    return [*parts, *(_anthropic_call(call, ids) for call in message.get("tool_calls", ()))]


def _anthropic_image(part: ChatMessage) -> dict[str, Any]:
    url = part["image_url"]["url"]
    source = {"type": "url", "url": url}
    if data := _DATA_URL.match(url):
        source = {"type": "base64", "media_type": data[1], "data": data[2]}
    return {"type": "image", "source": source}


def _anthropic_call(call: ChatMessage, ids: Mapping[str, str]) -> dict[str, Any]:
    inner = call.get("function") or call.get("custom") or {}
    arguments = inner.get("arguments", inner.get("input", ""))
    with contextlib.suppress(ValueError, RecursionError):
        arguments = json.loads(arguments, parse_constant=refuse_constant)
    if not isinstance(arguments, dict):
        arguments = {"input": arguments} if arguments else {}
    name = inner.get("name", "")
    return {"type": "tool_use", "id": ids[call["id"]], "name": name, "input": arguments}
