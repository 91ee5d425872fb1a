"""The OpenAPI document tells everything: what an operation does, and an example of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from memorist import Memory
from memorist.server.chat import ChatRuntime
from memorist.server.http.app import Limits, _routes


def _document() -> dict[str, Any]:
    with Memory(":memory:", embedder=None, extraction=None) as memory:
        return _routes(memory, ChatRuntime(), False, Limits(), None).openapi()


DOCUMENT = _document()


def _operations() -> Iterator[Any]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/api/"):
                yield pytest.param(operation, id=f"{method} {path}")


OPERATIONS = list(_operations())
assert len(OPERATIONS) > 50  # parametrised over none, the tests below would pass


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_says_what_it_does(operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert operation["description"]
    assert operation["tags"]
    for parameter in operation.get("parameters", ()):
        shape = parameter["schema"]
        plain = "default" in shape or "anyOf" in shape or "enum" in str(shape)
        assert parameter.get("description") or plain, parameter["name"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_an_operation_answers_has_a_fitting_example(operation: dict[str, Any]) -> None:
    for status, answer in operation["responses"].items():
        if status[0] != "2" or "content" not in answer:
            continue
        for kind, told in answer["content"].items():
            assert "example" in told, (status, kind)
            if kind == "application/json":
                _check(told["example"], told["schema"])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_an_operation_takes_has_a_fitting_example(operation: dict[str, Any]) -> None:
    if "requestBody" not in operation:
        return
    content = operation["requestBody"]["content"]
    if list(content) == ["application/octet-stream"]:
        assert content["application/octet-stream"]["schema"]["format"] == "binary"
        return
    schema = content["application/json"]["schema"]
    shape = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    example = {
        name: one["examples"][0] for name, one in shape["properties"].items() if "examples" in one
    }
    missing = set(shape.get("required", ())) - example.keys()
    assert missing <= {"messages"}, "each required field has an example"
    nested = {name: [{"role": "user", "content": "Hi"}] for name in missing}
    _check({**example, **nested}, schema)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_number_has_its_bounds(operation: dict[str, Any]) -> None:
    shapes = [parameter["schema"] for parameter in operation.get("parameters", ())]
    if "application/json" in (content := operation.get("requestBody", {}).get("content", {})):
        schema = content["application/json"]["schema"]
        shape = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        assert shape["additionalProperties"] is False
        shapes += shape["properties"].values()
    for one in shapes:
        for choice in one.get("anyOf", [one]):
            if choice.get("type") in ("integer", "number"):
                assert "minimum" in choice or "exclusiveMinimum" in choice
                assert "maximum" in choice


def _check(example: Any, schema: dict[str, Any]) -> None:
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema.Draft202012Validator(whole).validate(example)
