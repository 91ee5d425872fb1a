"""The page about the server says what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http_server import Served

PAGE = (Path(__file__).parent.parent.parent / "docs" / "server.md").read_text("utf-8")


@pytest.fixture(scope="module")
def document(served: Served) -> Any:
    return httpx.get(f"{served.url}/openapi.json").json()


def test_the_lines_of_python_work(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert '"http://127.0.0.1:7077"' in code
    assert ', user="me").hits' in code
    code = code.replace("http://127.0.0.1:7077", served.url)
    code = code.replace(', user="me").hits', ', user="me", deadline_ms=None).hits')
    monkeypatch.setenv("MEMORIST_KEY", served.key("me"))
    exec(code, {})  # noqa: S102 - the page's own lines
    assert capsys.readouterr().out == "I moved to Berlin in March. No more Munich commutes!\n"


def test_the_requests_of_the_page_are_answered(served: Served) -> None:
    me = served.client("me")
    requests = re.findall(r"7077(/api/\S+) .*\n +-d '(.*)'", PAGE)
    assert len(requests) == 2
    for path, body in requests:
        answer = me.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.is_success, answer.text


def test_every_resource_is_named(document: Any) -> None:
    named = set(re.findall(r"`/(?:api/)?([a-z]+)`", PAGE))
    served_ = {path.removeprefix("/api/").strip("/").split("/")[0] for path in document["paths"]}
    assert served_ <= named | {"chat"}
    assert named - {"api", "docs", "mcp"} <= served_


def test_the_reference_lists_every_operation_and_loads_nothing_from_elsewhere(
    served: Served, document: Any
) -> None:
    page = httpx.get(f"{served.url}/docs")
    rows = re.findall(r"<tr><td>(\w+)<td><code>(.+?)</code><td>\w", page.text)

    assert page.headers["content-type"].startswith("text/html")
    assert rows == [
        (way.upper(), path) for path in document["paths"] for way in document["paths"][path]
    ]
    assert set(re.findall(r'(?:href|src)="(.*?)"', page.text)) == {
        "./",
        "openapi.json",
        "web/icon.svg",
        "web/style.css",
    }
