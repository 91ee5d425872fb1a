"""Asking a chat model in tests: what is asked, and failures that must be silent about it."""

from __future__ import annotations

import time
import traceback
from typing import Any

import pytest

from memorist.errors import ProviderError
from memorist.providers.chat_model import ChatModel, Reply

KEY = "sk-secret-of-ada"
SECRET = "ada's secret text"
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": SECRET}]
SCHEMA = {
    "title": "answer",
    "description": "An answer",
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def complete(model: ChatModel, timeout_s: float = 5, **more: Any) -> Reply:
    return model.complete(MESSAGES, max_tokens=50, timeout_s=timeout_s, **more)


def failure(model: ChatModel, timeout_s: float = 5, **more: Any) -> ProviderError:
    """The error, having made sure that it tells neither the key nor the text, and in time."""
    started = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        complete(model, timeout_s, **more)
    assert time.monotonic() - started < timeout_s + 10  # seconds, on a busy machine
    said = "".join(traceback.format_exception(caught.value)) + repr(model)
    assert KEY not in said
    assert SECRET not in said
    return caught.value
