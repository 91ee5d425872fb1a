"""The load that measures the server: steady whatever the server does, and errors are counted."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from benchmarks.load import in_turn, request, steady
from benchmarks.server import asked
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support.http_server import serving

STALL_S = 0.5


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that answers at once, or stalls once, or fails, or is late."""
    stalls = iter([STALL_S])

    async def answer(request: Request) -> Response:
        match request.path_params["how"]:
            case "stall":
                await asyncio.sleep(next(stalls, 0))
            case "fail":
                return Response(b"no", 503)
            case "late":
                return Response(b'{"hits": [], "late": ["meaning"]}')
        return Response(b'{"hits": [], "late": []}')

    with serving(Starlette(routes=[Route("/{how}", answer, methods=["GET", "POST"])])) as url:
        yield url


def ask(url: str, how: str) -> Iterator[bytes]:
    return itertools.repeat(request(url, "POST", f"/{how}", b"{}"))


def test_a_stall_is_counted_for_every_request_that_was_due_in_it(url: str) -> None:
    took = asyncio.run(steady(url, ask(url, "stall"), rate=100, connections=1, seconds=1))
    waited = [seconds for seconds in took.seconds if seconds > STALL_S / 2]
    assert len(took.seconds) == 100
    assert len(waited) >= 20  # were they counted from when they were sent, it would be one


def test_errors_and_late_answers_are_counted(url: str) -> None:
    kinds = in_turn(ask(url, "ok"), ask(url, "fail"), ask(url, "late"))
    took = asyncio.run(steady(url, kinds, rate=300, connections=4, seconds=0.1))
    assert (len(took.seconds), took.errors, took.late) == (20, ["503 b'no'"] * 10, 10)


def test_each_kind_of_request_goes_to_its_own_address() -> None:
    kinds = asked("http://127.0.0.1:7077", 50)
    lines = {name: next(requests).partition(b" HTTP")[0] for name, requests in kinds.items()}
    assert lines == {
        "append": b"POST /api/messages",
        "recall": b"POST /api/recall",
        "chat": b"POST /api/chat",
        "health": b"GET /health",
        "mix": b"POST /api/messages",
    }
