"""What the two large APIs refuse, as far as their documentation says."""

from __future__ import annotations

import json
import re
from typing import Any


def check_openai(messages: list[dict[str, Any]]) -> None:
    """Roles, names, contents, and every call answered at once by results of its own."""
    assert messages
    open_calls: list[str] = []
    for message in messages:
        assert message["role"] in ("system", "user", "assistant", "tool")
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls
            open_calls.remove(message["tool_call_id"])
            assert isinstance(message["content"], str)
            continue
        assert not open_calls, "a call of a tool was parted from its result"
        _check_parts(message)
        if "name" in message:
            assert re.fullmatch(r"[^\s<|\\/>]{1,64}", message["name"])
        calls = message.get("tool_calls", [])
        assert "tool_calls" not in message or (calls and message["role"] == "assistant")
        open_calls = [call["id"] for call in calls]
        assert len(set(open_calls)) == len(open_calls)
    assert not open_calls
    json.dumps(messages, allow_nan=False)


def _check_parts(message: dict[str, Any]) -> None:
    content = message["content"]
    if content is None:
        assert message.get("tool_calls")
    elif isinstance(content, str):
        assert content.strip()
    else:
        assert content
        for part in content:
            assert part["type"] in ("text", "image_url")
            assert part["type"] == "text" or message["role"] == "user"
            if part["type"] == "image_url":
                assert part["image_url"]["url"].startswith(("data:image/", "http://", "https://"))


def check_anthropic(request: dict[str, Any]) -> None:
    """Turns that begin with the user, no empty text, and results right after their calls."""
    messages = request["messages"]
    assert isinstance(request["system"], str)
    assert messages[0]["role"] == messages[-1]["role"] == "user"
    pending: list[str] = []
    seen: set[str] = set()
    for before, message in zip([None, *messages], messages, strict=False):
        assert before is None or before["role"] != message["role"]
        assert message["content"]
        results = [part for part in message["content"] if part["type"] == "tool_result"]
        assert message["content"][: len(results)] == results, "results come first"
        assert sorted(part["tool_use_id"] for part in results) == sorted(pending)
        pending = []
        for part in message["content"]:
            _check_part(part, message["role"])
            if part["type"] == "tool_use":
                assert part["id"] not in seen
                seen.add(part["id"])
                pending.append(part["id"])
    assert not pending
    json.dumps(request, allow_nan=False)


def _check_part(part: dict[str, Any], role: str) -> None:
    match part["type"]:
        case "text":
            assert part["text"].strip()
        case "image":
            assert role == "user"
            assert part["source"]["type"] in ("base64", "url")
        case "tool_use":
            assert role == "assistant"
            assert isinstance(part["input"], dict)
            assert re.fullmatch(r"[a-zA-Z0-9_-]+", part["id"])
        case "tool_result":
            assert role == "user"
        case other:
            raise AssertionError(f"{other} is no kind of part")
