"""Every route of the OpenAPI document, asked with the keys of another tenant and real ids."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorist.server.http.middleware import FILES
from tests.support.http_server import Served

WORD = "heliotrope"
PUBLIC = {"/health", "/ready"}
KEPT = ("messages", "facts", "notes", "articles")
# Where a body needs one of several fields.
ONE_OF: dict[str, dict[str, Any]] = {
    "ChatAsk": {"message": "x"},
    "ChangeFactBody": {"object": "x"},
    "ChangeMemoryBody": {"text": "x"},
    "ForgetBody": {"everything": True},
    "AddKeyBody": {"user": "ada"},
    "WriteNotesBody": {"base_version": 0},
}

Operation = tuple[str, str, dict[str, Any]]


@pytest.fixture
def ids(served: Served) -> dict[str, str]:
    """An id of ada's for each part of a path; a route with a new kind of id must be added here."""
    ada, admin = served.client("ada"), served.client(None)

    def made(path: str, by: httpx.Client = ada, **body: Any) -> dict[str, Any]:
        answer = by.post(f"/api/{path}", json=body)
        assert answer.status_code == 201, answer.text
        told: dict[str, Any] = answer.json()
        return told

    said = made("messages", role="assistant", content=WORD, unfinished=True, session=WORD)
    ada.put("/api/notes", json={"text": WORD, "base_version": 0})
    asked = {"message": WORD, "session_id": WORD}
    ada.post("/api/chat", json=asked, headers={"Accept": "application/json"})
    fact = made("facts", subject="the code", predicate="is", object=WORD)["id"]
    return {
        "receipt_id": ada.get("/api/receipts").json()["items"][0]["id"],
        "message_id": said["message_ids"][0],
        "memory_id": made("memories", text=f"The code word is {WORD}.")["id"],
        "fact_id": fact,
        "record_id": fact,
        "article_id": made("articles", title=WORD, text=WORD)["id"],
        "key_id": made("keys", admin, user="ada", label=WORD)["info"]["id"],
        "job_id": "1",
        "session_id": WORD,
        "name": "nobody",
    }


def operations(document: dict[str, Any]) -> list[Operation]:
    return [
        (method.upper(), path, about)
        for path, methods in document["paths"].items()
        for method, about in methods.items()
        if path not in PUBLIC
    ]


def body_of(about: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """What an operation must be told, by the document's examples."""
    ref = about["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    shape = ref.rsplit("/", 1)[-1]
    schema = document["components"]["schemas"][shape]
    fields, said = schema["properties"], [{"role": "user", "content": "x"}]
    body = {
        name: said if name == "messages" else fields[name]["examples"][0]
        for name in schema.get("required", ())
    }
    return body | ONE_OF.get(shape, {})


def ask(
    client: httpx.Client, user: str | None, one: Operation, path: str, document: dict[str, Any]
) -> httpx.Response:
    method, _, about = one
    named = {} if user is None else {"user": user}
    if path in FILES:
        octets = {"Content-Type": "application/octet-stream"}
        return client.request(method, path, params=named, content=b"[]", headers=octets)
    if method not in ("GET", "DELETE"):
        whose = {} if "/keys" in path else named
        return client.request(method, path, json={**body_of(about, document), **whose})
    takes = {it["name"] for it in about.get("parameters", ()) if it["in"] == "query"}
    more = {**named, "session": WORD, "timeout_s": "0.1"}  # streams end, too
    query = {name: value for name, value in more.items() if name in takes}
    return client.request(method, path, params=query)


def test_no_route_tells_another_tenant_anything_or_changes_it(
    served: Served, ids: dict[str, str]
) -> None:
    ada = served.client("ada")
    document = httpx.get(f"{served.url}/openapi.json").json()
    before = [ada.get(f"/api/{name}").json() for name in KEPT]
    for user, whose in (("ada", None), (None, "ada")):
        stranger = served.client(user, tenant="another")
        for one in operations(document):
            path = one[1].format_map(ids)
            answer = ask(stranger, whose, one, path, document)
            assert WORD not in answer.text, one[:2]
            assert answer.status_code < 500, one[:2]
            if path != one[1]:
                assert answer.status_code in (403, 404), (one[:2], answer.text)
    assert [ada.get(f"/api/{name}").json() for name in KEPT] == before
