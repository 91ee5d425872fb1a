"""Every route of the OpenAPI document asks who is calling, so that none can forget it."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from memorist.server.auth import Keys
from memorist.server.http.middleware import FILES
from tests.support.http_server import Served

PUBLIC = {"/health", "/ready"}
OCTETS = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def operations(served: Served) -> list[tuple[str, str]]:
    """Every method and path of the document, with ids of nobody in them."""
    paths = httpx.get(f"{served.url}/openapi.json").json()["paths"]
    return [
        (method.upper(), re.sub(r"\{\w+\}", "1", path))
        for path, methods in paths.items()
        for method in methods
        if path not in PUBLIC
    ]


def ask(client: httpx.Client, method: str, path: str, **more: Any) -> httpx.Response:
    json: dict[str, Any] | None = None if method in ("GET", "DELETE") else {}
    return client.request(method, path, json=json, **more)


def test_the_document_has_the_resources_of_the_api(operations: list[tuple[str, str]]) -> None:
    found = {path.split("/")[2] for _, path in operations if path.startswith("/api/")}
    wanted = (
        "sessions messages memories facts recall context notes articles jobs audit forget chat keys"
    )
    assert set(wanted.split()) <= found


def test_no_route_answers_without_a_key(served: Served, operations: list[tuple[str, str]]) -> None:
    made = Keys(served.memory.keys).create(tenant="default", user="ada")
    served.memory.store.revoke_key("default", made.record.id)
    known = served.key()
    wrong = known[:-1] + ("A" if known[-1] != "A" else "B")
    for bad in (None, "x", "mk_", wrong, made.text, "eyJhbGciOiJub25lIn0.e30."):
        client = served.with_key(bad)
        for method, path in operations:
            answer = ask(client, method, path)
            assert answer.status_code == 401, (method, path, bad)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["code"] == "unauthorized"


def test_no_route_lets_a_user_ask_for_another(
    served: Served, operations: list[tuple[str, str]]
) -> None:
    client = served.client(user="mallory")
    for method, path in operations:
        if not path.startswith("/api/"):
            continue
        if method in ("GET", "DELETE"):
            answer = client.request(method, path, params={"user": "ada"})
        elif path in FILES:
            answer = client.post(path, params={"user": "ada"}, content=b"[]", headers=OCTETS)
        else:
            answer = client.request(method, path, json={"user": "ada"})
        assert answer.status_code in (403, 422), (method, path, answer.status_code)


def test_a_key_of_another_tenant_finds_nothing(served: Served) -> None:
    here, there = served.client(user="ada"), served.client(user="ada", tenant="other")
    said = {"role": "user", "content": "the code word is heliotrope"}
    id_ = here.post("/api/messages", json=said).json()["message_ids"][0]
    assert there.get(f"/api/messages/{id_}").status_code == 404
    assert there.get("/api/messages").json()["items"] == []
    assert there.get("/api/sessions").json()["items"] == []
    found = there.post("/api/recall", json={"question": "what is the code word?"}).json()
    assert found["hits"] == []
    assert here.get(f"/api/messages/{id_}").status_code == 200


def test_an_admin_names_a_user_of_their_own_tenant(served: Served) -> None:
    admin, other = served.client(user=None), served.client(user=None, tenant="other")
    said = {"role": "user", "content": "hello", "user": "grace"}
    assert admin.post("/api/messages", json=said).status_code == 201
    assert admin.get("/api/messages").status_code == 422
    assert len(admin.get("/api/messages", params={"user": "grace"}).json()["items"]) == 1
    assert other.get("/api/messages", params={"user": "grace"}).json()["items"] == []
