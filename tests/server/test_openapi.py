"""The OpenAPI document is valid, and what the server answers is what it says."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from memorist import Memory
from memorist.server.auth import Guard, Keys
from memorist.server.http.app import Limits, build_app
from memorist.server.http.run import BoundedConnection
from tests.server.api import ROUTES
from tests.support.http_server import Served, serving

EXAMPLES = 200 if os.environ.get("MEMORIST_PROVE") else 3
LONGEST = 2  # list in what is sent
Ids = dict[str, list[str]]
ADMINS = ("/api/keys", "/metrics")
# A document cannot say all that a request must be: that a cursor came from a page, or a text says
# something; so what fits its shapes may be refused. And names that nobody knows are not read in
# a query or among headers, so that what does not fit may be taken.
TOO_STRICT: Any = [positive_data_acceptance, negative_data_rejection]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
TAKES_NOTHING = ("/health", "/ready", "/metrics")  # so that nothing can be wrong with it
OPERATIONS = [
    pytest.param(route.path, method, mode, id=f"{method} {route.path} {mode.value}")
    for route in ROUTES
    for method in route.methods or ()
    for mode in (MODES[:1] if route.path in TAKES_NOTHING else MODES)
]


def furnish(client: httpx.Client, word: str) -> dict[str, list[str]]:
    """One of everything, and more; the ids by the names of the path's parts."""
    ids: dict[str, list[str]] = {"session_id": ["s0", "s1"], "job_id": ["1", "2", "3"]}
    ids["name"] = ["ada", "it"]

    def add(kind: str, path: str, **body: Any) -> None:
        answer = client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        told = answer.json()
        ids.setdefault(kind, []).append(told.get("id") or told["message_ids"][0])

    for number in range(6):
        about = f"{word} number {number}"
        add(
            "message_id",
            "/api/messages",
            role="user",
            content=f"I moved to Berlin, {about}.",
            message_id=f"m{number}",
            session=f"s{number % 2}",
            unfinished=number % 2 == 0,
        )
        add("memory_id", "/api/memories", text=f"Likes tea, {about}.")
        add("fact_id", "/api/facts", subject="Ada", predicate=f"likes {number}", object=about)
        add("article_id", "/api/articles", title=about, text=f"# Returns\n\nWithin {about} days.")
    client.put("/api/notes", json={"text": word, "base_version": 0}).raise_for_status()
    one_answer = {"Accept": "application/json"}
    client.post("/api/chat", json={"message": word}, headers=one_answer).raise_for_status()
    ids["record_id"] = [*ids["memory_id"], *ids["fact_id"]]
    ids["receipt_id"] = [item["id"] for item in client.get("/api/receipts").json()["items"]]
    return ids


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path: Path = tmp_path_factory.mktemp("openapi") / "memory.db"
    with (
        Memory(path, embedder=None, extraction=None) as memory,
        serving(
            build_app(memory, Guard(memory.keys), Limits(requests_per_s=0, failures_per_s=0)),
            http=BoundedConnection,
        ) as url,
    ):
        server = Served(url, memory)
        with server.clients:
            yield server


@pytest.fixture(scope="module")
def ids(served: Served) -> Ids:
    """What there is, by the names of the path's parts."""
    spare = Keys(served.memory.keys).create(tenant="default", user="spare").record.id
    return {**furnish(served.client("ada"), "tea"), "key_id": [spare]}


@pytest.fixture(scope="module")
def schema(served: Served) -> Any:
    """The document, with short lists in what is sent: long ones take long to think of."""
    document = httpx.get(f"{served.url}/openapi.json").raise_for_status().json()
    for name, part in document["components"]["schemas"].items():
        for field in part["properties"].values() if name.endswith("Body") else ():
            if field.get("type") == "array":
                field["maxItems"] = LONGEST
    return schemathesis.openapi.from_dict(document)


def test_the_document_is_openapi_3_1(schema: Any, document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert {
        (path, method.upper()) for path, its in document["paths"].items() for method in its
    } == {(route.path, method) for route in ROUTES for method in route.methods or ()}
    schema.validate()
    for part in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(part)


@pytest.mark.filterwarnings("ignore:Do not use the `random` module:Warning")  # schemathesis' own
@pytest.mark.parametrize(("path", "method", "mode"), OPERATIONS)
def test_an_operation_answers_as_the_document_says(
    path: str, method: str, mode: GenerationMode, schema: Any, served: Served, ids: Ids
) -> None:
    key = served.key(None if path.startswith(ADMINS) else "ada")
    statuses: Counter[int] = Counter()

    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Case[Any]) -> None:
        lead_there(case, ids, statuses.total())
        headers = {"Authorization": f"Bearer {key}"}
        answer = case.call(served.url, headers=headers, timeout=120)
        statuses[answer.status_code] += 1
        case.validate_response(answer, excluded_checks=TOO_STRICT)
        assert answer.status_code < 500

    ask()
    assert statuses.total() >= 1


def lead_there(case: Case[Any], ids: Ids, number: int) -> None:
    """Let most requests get past the door: by ids of what is there, and by asking for oneself."""
    if number % 2:
        for name in case.path_parameters or {}:
            case.path_parameters[name] = ids[name][number // 2 % len(ids[name])]
    if number % 4:
        for part in (case.query, case.body):
            if isinstance(part, dict):
                part.pop("user", None)
    if case.path.endswith(("/updates", "/events")):  # else it goes on for as long as nothing comes
        case.query["timeout_s"] = 0.05


def test_below_a_path_the_document_names_it(served: Served, document: dict[str, Any]) -> None:
    app = build_app(served.memory, Guard(served.memory.keys))

    async def ask(root: str) -> Any:
        transport = httpx.ASGITransport(app, root_path=root)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.get(f"{root}/openapi.json")).json()

    assert asyncio.run(ask("/memory")) == document | {"servers": [{"url": "/memory"}]}
    assert asyncio.run(ask("")) == document
