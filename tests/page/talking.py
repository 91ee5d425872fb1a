"""A server whose model is a stub, for the tests of chat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_openai import ChatOpenAI

from memorist import Memory
from memorist.server.chat import ChatRuntime, ChatSettings
from tests.page.conftest import local_server
from tests.support.http_server import Served
from tests.support.model_server import ModelServer


@contextmanager
def talking(memory: Memory, *answers: Any) -> Iterator[tuple[Served, ModelServer]]:
    """A server for ada and the model behind it, which gives these answers one by one."""
    with ModelServer(answers) as model:
        client = ChatOpenAI(
            model="stub",
            base_url=model.url,
            api_key="x",  # type: ignore
            max_retries=0,
            use_responses_api=False,
        )
        chats = ChatRuntime(client, ChatSettings(deadline_ms=None))
        with local_server(memory, chats=chats) as served:
            yield served, model
