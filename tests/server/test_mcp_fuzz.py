"""Odd requests to the MCP server over HTTP: each is answered, none with a failure of ours."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import httpx
import pytest

from memorist import Memory
from tests.server.test_mcp_http import call, post, result
from tests.support.mcp_fuzz import fuzz_requests
from tests.support.mcp_http import ALONE, WHOLE, serving_elsewhere


@pytest.mark.parametrize(
    ("module", "count"),
    [
        (WHOLE, 150),
        pytest.param(WHOLE, 20_000, marks=pytest.mark.prove),
        pytest.param(ALONE, 20_000, marks=pytest.mark.prove),
    ],
)
def test_odd_requests_are_answered(module: str, count: int, tmp_path: Path) -> None:
    statuses: Counter[int] = Counter()
    with serving_elsewhere(tmp_path / "a.db", module) as url:  # fails if it is gone
        with httpx.Client(timeout=60) as client:
            for request in fuzz_requests(count, seed=count):
                answer = client.post(url, headers=request.headers, content=request.body)
                assert answer.status_code < 500, (request, answer.text)
                assert answer.status_code != 200 or b"jsonrpc" in answer.content, request
                statuses[answer.status_code] += 1
        stored = result(post(url, call("remember", content="Still here.")))
    assert stored["structuredContent"]["stored"]
    with Memory(tmp_path / "a.db", embedder=None, extraction=None) as memory:
        tenants = [memory, memory.tenant("acme")]
        users = [(of, scope) for of in tenants for scope in of.users()]
        roles = {it.message.role for of, scope in users for it in of.messages.list(scope)}
    assert roles == {"assistant"}  # whatever was named
    assert statuses[200] > count / 4  # many get as far as the tools
