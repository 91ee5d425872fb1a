"""Providers' replies, read into the fields of a `Message`.

Each reader unwraps its provider's envelope; `_message` reads the message inside. What has no field
of its own is kept in `structured_data`, as the provider sent it:

    reasoning      thinking blocks, with the signatures the provider wants back
    server_items   calls that the provider ran itself, and their results
    call_details   by call id: what a tool call carries beyond its name and arguments
    text_details   what text blocks carry beyond their text: annotations, citations, refusals
"""

import base64
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from typing import Any

from memorist.errors import MessageError
from memorist.records.json_values import MAX_JSON_DEPTH, check_json, dump_json, map_json
from memorist.records.values import check_text

Fields = dict[str, Any]

OTHER_ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}
OTHER_ROLES |= {"developer": "system", "function": "tool"}
_LANGCHAIN = {"user", "assistant", "system", "tool", "chat", *OTHER_ROLES} - {"model"}
_LANGCHAIN_READ = ("content", "id", "name", "tool_call_id", "status", "artifact")
_LANGCHAIN_CALLS = ("tool_calls", "invalid_tool_calls", "tool_call_chunks")
_TEXT = {"text": "text", "output_text": "text", "input_text": "text", "refusal": "refusal"}
_REASONING = ("reasoning", "thinking", "redacted_thinking")
_CALL = re.compile(r"function_call|custom_tool_call|tool_use|(invalid_)?tool_call(_chunk)?")
_SERVER = re.compile(r"server_tool_.+|mcp_.+|.+_tool_result|container_upload|.+_call(_output)?")
_ITEMS = ("_call", "_call_output")
_GEMINI_SERVER = {"executable_code", "code_execution_result", "tool_call", "tool_response"}
_GEMINI_SOURCES = ("grounding_metadata", "citation_metadata", "url_context_metadata")

_ARGUMENTS = ("arguments", "args", "input", "parsed_arguments")
_CALL_READ = {"id", "call_id", "type", "function", "custom", "name", "index", *_ARGUMENTS}
_BUILT_IN_READ = {"id", "call_id", "type", "status"}
_TEXT_READ = {"id", "type", "text", "index"}
_SAID = {"content", "tool_calls", "agent_calls", "function_call"}
_MESSAGE_READ = {"id", "role", "name", "tool_call_id"} | _SAID
_ENVELOPE = {"type", "object", "model", "usage", "stop_reason", "stop_sequence"}
_DEEPEST = 2 * MAX_JSON_DEPTH
# Values that nearly every reply has and that say nothing.
_DULL: tuple[Any, ...] = (None, "", [], {}, "completed", {"type": "direct"})


def response_fields(response: Any) -> Fields:
    """The fields of a `Message` for a reply of OpenAI, Anthropic, Gemini or LangChain."""
    data = _dict(_plain(response), "itself")
    if data.get("error"):
        raise MessageError("response is no message: the provider returned an error")
    for recognise, read in _READERS:
        if recognise(data):
            return read(data)
    raise MessageError(
        f"response has an unknown shape, a dict of {len(data)} keys; give a reply of OpenAI, "
        "Anthropic, Gemini or LangChain, or make a Message of role and content"
    )


def _langchain(data: Fields) -> Fields:
    kind, body = _langchain_body(data)
    extra = _dict(body.get("additional_kwargs") or {}, "additional_kwargs")
    message = {key: value for key, value in extra.items() if key != "memorist"}
    message |= {key: body[key] for key in _LANGCHAIN_READ if body.get(key) is not None}
    message["role"] = body.get("role") if kind == "chat" else kind
    good, bad, chunks = (_dicts(body.get(key), key) for key in _LANGCHAIN_CALLS)
    # In a merged stream the chunks hold the model's own strings, tool_calls repaired guesses.
    return _message(message, [chunk for chunk in chunks if chunk.get("args")], good + bad)


def _langchain_body(data: Fields) -> tuple[str, Fields]:
    """The kind of a LangChain message, and its fields, out of any of its serialised forms."""
    name, body = data.get("type"), data.get("data", data)
    if data.get("lc") == 1:
        path, body = data.get("id"), data.get("kwargs")
        name = path[-1] if isinstance(path, list) and path else None
    if not isinstance(body, dict) or "content" not in body:
        return "", {}
    return re.sub(r"Message(Chunk)?$", "", str(name)).lower(), body


def _chat_completion(data: Fields) -> Fields:
    return _message(_dict(_first(data["choices"], "choices").get("message"), "message"))


def _responses(data: Fields) -> Fields:
    items = _dicts(data["output"], "output")
    answered = [item.get("call_id") for item in items if _kind(item).endswith("_output")]
    head: Fields = {}
    blocks: list[Fields] = []
    server: list[Fields] = []
    for item in items:
        if _kind(item) == "message":
            head = head or item
            blocks += _dicts(item.get("content"), "content")
        elif _kind(item) in _REASONING or (_is_call(item) and item.get("call_id") not in answered):
            blocks.append(item)
        else:
            server.append(_trim(item))
    return _message(head | {"role": "assistant", "content": blocks, "server_items": server})


def _item(data: Fields) -> Fields:
    if not _kind(data).endswith("_output"):
        return _responses({"output": [data]})
    answer = {"content": data.get("output"), "tool_use_id": data.get("call_id")}
    return _tool_result(_rest(data, {"output", "call_id"}) | answer)


def _gemini(data: Fields) -> Fields:
    candidate: Fields = {"content": data, "role": "user"}
    if "candidates" in data:
        candidate = _snake(_first(data["candidates"], "candidates")) | {"role": "model"}
    content = _dict(candidate.get("content") or {}, "content")
    answers = itertools.count()
    parts = _dicts(content.get("parts"), "parts")
    blocks = [_gemini_block(_snake(part), answers) for part in parts]
    images = [block["image_url"] for block in blocks if "image_url" in block]
    message = {key: candidate.get(key) for key in _GEMINI_SOURCES}
    message["role"] = content.get("role") or candidate["role"]
    message["content"] = [block for block in blocks if "image_url" not in block]
    return _message(message) | ({"images": images} if images else {})


def _gemini_block(part: Fields, answers: Iterator[int]) -> Fields:
    """A part in the form that the other providers give their blocks."""
    if "function_call" in part:
        call = _snake(_dict(part["function_call"], "functionCall"))
        return _rest(part, {"function_call"}) | call | {"type": "function_call"}
    if "function_response" in part:
        answer = _snake(_dict(part["function_response"], "functionResponse"))
        # Calls without ids are numbered too: Gemini pairs calls and answers by their order.
        call_id = answer.get("id") or f"call_{next(answers)}"
        result = {"type": "tool_result", "tool_use_id": call_id, "content": answer.get("response")}
        return _rest(part, {"function_response"}) | _rest(answer, {"id", "response"}) | result
    if part.keys() & _GEMINI_SERVER:
        return {**part, "type": "server_tool_part"}
    if part.get("thought"):
        return {**part, "type": "reasoning"}
    if url := _gemini_image(part):
        return {"image_url": url}
    return {"type": "text" if "text" in part else next(iter(part), "part"), **part}


def _gemini_image(part: Fields) -> str | None:
    blob = _snake(blob) if isinstance(blob := part.get("inline_data"), dict) else {}
    kind, data = blob.get("mime_type"), blob.get("data")
    if not isinstance(kind, str) or not isinstance(data, str) or not kind.startswith("image/"):
        return None
    # Google's SDK writes the URL-safe alphabet into JSON; data URLs want the other one.
    return f"data:{kind};base64,{data.replace('-', '+').replace('_', '/')}"


def _message(data: Fields, *more_calls: list[Fields]) -> Fields:
    """Read role, content and calls; `more_calls` are other lists of the same calls, best first."""
    role, content = data.get("role"), data.get("content")
    blocks = _blocks(content) if isinstance(content, list) else []
    if len(blocks) == 1 and _kind(blocks[0]) == "tool_result":
        return _tool_result(data | blocks[0])
    calls = _all_calls(data, [block for block in blocks if _is_call(block)], *more_calls)
    kept: Fields = {}
    if isinstance(content, list):
        content, kept = _sorted([block for block in blocks if not _is_call(block)])
    kept["call_details"] = {call["call_id"]: more for call in calls if (more := call.pop("more"))}
    fields = {
        "role": OTHER_ROLES.get(str(role), role),
        "content": content or data.get("refusal") or content,
        "message_id": data.get("id"),
        "name": data.get("name"),
        "tool_calls": calls,
        "agent_calls": data.get("agent_calls"),
        "tool_call_id": data.get("tool_call_id"),
        "structured_data": _rest(data, _MESSAGE_READ | _ENVELOPE) | _rest(kept),
    }
    return {key: value for key, value in fields.items() if value or key in ("role", "content")}


def _tool_result(block: Fields) -> Fields:
    content = "" if block.get("content") is None else block["content"]
    answer = {"role": "tool", "content": content, "tool_call_id": block.get("tool_use_id")}
    return _message(_rest(block, {"tool_use_id"}) | answer)


def _sorted(blocks: list[Fields]) -> tuple[str | list[Fields] | None, Fields]:
    """The content of some blocks, as text if possible, and what is kept beside it."""
    parts: list[Fields] = []
    kept: Fields = {"reasoning": [], "server_items": []}
    for block in map(_trim, blocks):
        if _kind(block) in _REASONING:
            kept["reasoning"].append(block)
        elif _SERVER.fullmatch(_kind(block)):
            kept["server_items"].append(block)
        else:
            parts.append(block)
    texts: list[Any] = [part.get(_TEXT.get(_kind(part), "")) for part in parts]
    if not all(isinstance(text, str) for text in texts):
        return parts, kept
    kept["text_details"] = [more for part in parts if (more := _rest(part, _TEXT_READ))]
    return "".join(texts) if texts else None, kept


def _all_calls(data: Fields, inner: list[Fields], *more_calls: list[Fields]) -> list[Fields]:
    """Each call once, from all lists that name it, those with the model's own strings first."""
    exact = [block for block in inner if _kind(block) in ("function_call", "custom_tool_call")]
    rest = [block for block in inner if block not in exact]
    calls: list[Fields] = []
    for source in (_dicts(data.get("tool_calls"), "tool_calls"), exact, *more_calls, rest):
        known = {call["call_id"] for call in calls}
        numbered = [call_fields(call, f"call_{place}") for place, call in enumerate(source)]
        calls += [call for call in numbered if call["call_id"] not in known]
    if not calls and data.get("function_call"):
        calls = [call_fields(_dict(data["function_call"], "function_call"), "call_0")]
    return [{**call, "name": call["name"] or ""} for call in calls]


def call_fields(call: Fields, default_id: str) -> Fields:
    """The fields of a tool call in any provider's form, and what has none of ours as `more`."""
    kind = _kind(call)
    named = [call[key] for key in ("function", "custom") if isinstance(call.get(key), dict)]
    inner = named[0] if named else call
    more = _rest(inner | call, _CALL_READ)
    if "name" not in inner and kind.endswith("_call") and not _CALL.fullmatch(kind):
        # A built-in tool that the client runs: computer, shell, apply_patch.
        inner = {"name": kind.removesuffix("_call"), "arguments": _rest(call, _BUILT_IN_READ)}
        more = {"type": kind}
    if "name" not in inner:
        raise MessageError("tool_calls holds a call without a name")
    call_id = call.get("call_id") or call.get("id") or default_id
    check_text(call_id, "tool_calls.call_id", MessageError)
    return {
        "id": call.get("id") or call_id,
        "call_id": call_id,
        "type": "custom" if kind in ("custom", "custom_tool_call") else "function",
        "name": inner["name"],
        "arguments": _arguments_of(inner),
        "more": more,
    }


def _arguments_of(call: Mapping[str, Any]) -> str:
    """The arguments of a tool call as text, by whichever name it has them."""
    arguments: Any = next((call[key] for key in _ARGUMENTS if call.get(key) is not None), {})
    if isinstance(arguments, str):
        return arguments
    return dump_json(check_json(arguments, "tool_calls.arguments", MessageError))


def _is_call(block: Fields) -> bool:
    """Whether the client has to answer the block."""
    kind = _kind(block)
    return bool(_CALL.fullmatch(kind) or (kind.endswith("_call") and block.get("call_id")))


def _has_list(*keys: str) -> Callable[[Fields], bool]:
    return lambda data: any(isinstance(data.get(key), list) for key in keys)


def _kind(block: Fields) -> str:
    return str(block.get("type"))


def _blocks(content: list[Any]) -> list[Fields]:
    blocks = [{"type": "text", "text": it} if isinstance(it, str) else it for it in content]
    return _dicts(blocks, "content")


def _trim(block: Fields) -> Fields:
    return {key: value for key, value in block.items() if value is not None}


def _rest(data: Fields, read: Collection[str] = ()) -> Fields:
    return {key: value for key, value in data.items() if key not in read and value not in _DULL}


def _snake(data: Fields) -> Fields:
    """Google's camelCase keys as its SDK spells them; this level only, deeper ones are a user's."""
    return _trim({re.sub("([A-Z])", r"_\1", str(key)).lower(): data[key] for key in data})


def _first(items: Any, field: str) -> Fields:
    if not items:
        raise MessageError(f"response has no {field}: the provider sent an empty list")
    return _dicts(items, field)[0]


def _dict(value: Any, field: str) -> Fields:
    if not isinstance(value, dict):
        raise MessageError(f"response {field} must be a dict, got {type(value).__name__}")
    return value


def _dicts(value: Any, field: str) -> list[Fields]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise MessageError(f"response {field} must be a list of dicts")
    return value


def _plain(response: Any) -> Any:
    """A copy of dicts, lists and scalars, whichever SDK the response came from."""
    too_deep = MessageError(f"response is nested more than {_DEEPEST} levels deep")
    return map_json(response, _plain_one, lambda key: key, depth=_DEEPEST, too_deep=too_deep)


def _plain_one(value: Any) -> Any:
    if hasattr(value, "model_dump") and not isinstance(value, type):
        # Pydantic would warn of parsed replies: they hold a model where their class says None.
        quiet = {"warnings": False} if hasattr(value, "__pydantic_serializer__") else {}
        value = value.model_dump(**quiet)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.value if isinstance(value, Enum) else value


_READERS: tuple[tuple[Callable[[Fields], bool], Callable[[Fields], Fields]], ...] = (
    (lambda data: _langchain_body(data)[0] in _LANGCHAIN, _langchain),
    (_has_list("choices"), _chat_completion),
    (_has_list("output"), _responses),
    (_has_list("candidates", "parts"), _gemini),
    (lambda data: _kind(data) in _REASONING or _kind(data).endswith(_ITEMS), _item),
    (lambda data: "role" in data and bool(data.keys() & _SAID), _message),
)
