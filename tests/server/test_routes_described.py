"""The OpenAPI document tells everything: what an operation does, and an example of it."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest


@pytest.fixture(scope="module")
def shapes(document: dict[str, Any]) -> dict[str, Any]:
    return document["components"]["schemas"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> dict[str, Any]:
    """Each of the API, by its method and path."""
    return {
        f"{method} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/api/")
    }


def test_an_operation_says_what_it_does(operations: dict[str, Any]) -> None:
    assert len(operations) > 50
    for name, operation in operations.items():
        assert operation["summary"], name
        assert operation["description"], name
        assert operation["tags"], name
        for parameter in operation.get("parameters", ()):
            shape = parameter["schema"]
            plain = "default" in shape or "anyOf" in shape or "enum" in str(shape)
            assert parameter.get("description") or plain, (name, parameter["name"])


def test_what_an_operation_answers_has_a_fitting_example(
    operations: dict[str, Any], shapes: dict[str, Any]
) -> None:
    for name, operation in operations.items():
        for status, answer in operation["responses"].items():
            if status[0] != "2" or "content" not in answer:
                continue
            for kind, told in answer["content"].items():
                assert "example" in told, (name, status, kind)
                if kind == "application/json":
                    _check(told["example"], told["schema"], shapes)


def test_what_an_operation_takes_has_a_fitting_example(
    operations: dict[str, Any], shapes: dict[str, Any]
) -> None:
    for name, operation in operations.items():
        content = operation.get("requestBody", {}).get("content", {})
        if list(content) == ["application/octet-stream"]:
            assert content["application/octet-stream"]["schema"]["format"] == "binary", name
        elif content:
            shape = _body(operation, shapes)
            fields = shape["properties"].items()
            example = {field: one["examples"][0] for field, one in fields if "examples" in one}
            missing = set(shape.get("required", ())) - example.keys()
            assert missing <= {"messages"}, f"{name}: each required field has an example"
            nested = {field: [{"role": "user", "content": "Hi"}] for field in missing}
            _check({**example, **nested}, shape, shapes)


def test_every_number_has_its_bounds(operations: dict[str, Any], shapes: dict[str, Any]) -> None:
    for name, operation in operations.items():
        numbers = [parameter["schema"] for parameter in operation.get("parameters", ())]
        if "application/json" in operation.get("requestBody", {}).get("content", {}):
            shape = _body(operation, shapes)
            assert shape["additionalProperties"] is False, name
            numbers += shape["properties"].values()
        for one in numbers:
            for choice in one.get("anyOf", [one]):
                if choice.get("type") in ("integer", "number"):
                    assert "minimum" in choice or "exclusiveMinimum" in choice, name
                    assert "maximum" in choice, name


def _body(operation: dict[str, Any], shapes: dict[str, Any]) -> dict[str, Any]:
    """The shape of the JSON that an operation takes."""
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return shapes[schema["$ref"].rsplit("/", 1)[1]]  # type: ignore[no-any-return]


def _check(example: Any, schema: dict[str, Any], shapes: dict[str, Any]) -> None:
    whole = {**schema, "components": {"schemas": shapes}}
    jsonschema.Draft202012Validator(whole).validate(example)
