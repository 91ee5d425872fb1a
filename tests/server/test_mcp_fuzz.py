"""Odd requests to the MCP server over HTTP: each is answered, none with a failure of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.test_mcp_http import call, post, result
from tests.support.mcp_fuzz import requests, send_all
from tests.support.mcp_http import DOOR, WHOLE, serving_elsewhere
from tests.support.mcp_servers import on_both, python_with


def fuzz(sdk: str, database: Path, module: str, count: int) -> None:
    odd = list(requests(count, seed=int(sdk), modern=0.1 if sdk == "1" else 0.4))
    with serving_elsewhere(python_with(sdk), database, module) as url:  # fails if it is gone
        statuses = send_all(url, odd)
        found = result(post(url, call("remember", content="Still here.")))
    assert found["structuredContent"]["stored"]
    assert statuses.total() == count
    assert statuses[200] > count / 4  # many get as far as the tools


def test_five_thousand_odd_requests_are_answered(tmp_path: Path) -> None:
    fuzz("1", tmp_path / "a.db", WHOLE, 5_000)


@pytest.mark.prove
@pytest.mark.parametrize("module", [DOOR, WHOLE])
@on_both
def test_both_sdks_answer_many_more(sdk: str, module: str, tmp_path: Path) -> None:
    fuzz(sdk, tmp_path / "a.db", module, 20_000)
