"""What a request may hold, as the OpenAPI document says; and in words what is wrong with one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from memorist.errors import InvalidError

# What pydantic calls it, and what we say; the values in braces are the shape's own.
_SAID = {
    "missing": "is missing",
    "extra_forbidden": "has a field that is not known here",
    "literal_error": "must be {expected}",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_attributes_type": "must be a JSON object",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "has more than {max_length} characters",
    "string_too_short": "has fewer than {min_length} characters",
    "too_long": "has more than {max_length} items",
    "too_short": "has fewer than {min_length} items",
    "timezone_aware": "needs a time zone: add Z or +02:00",
    "datetime_type": "must be a moment, as 2026-04-01T09:00:00Z",
    "datetime_parsing": "must be a moment, as 2026-04-01T09:00:00Z",
    "datetime_from_date_parsing": "must be a moment, as 2026-04-01T09:00:00Z",
}


def in_words(kind: str, context: Mapping[str, Any]) -> str:
    """What is wrong, without any value that was sent."""
    said = _SAID.get(kind, f"is wrong ({kind})")
    own = ("expected", "gt", "ge", "le", "max_length", "min_length")
    return said.format(**{name: context.get(name, "something else") for name in own})


async def check_query(request: Request) -> None:
    """Refuse names in the query that mean nothing: a slip would else widen what is asked for."""
    if not request.query_params:
        return
    operation = _operation(request)
    named = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
    if operation and request.query_params.keys() - set(named):
        taken = ", ".join(named) or "nothing"
        raise InvalidError(f"the query has a name that is not known here; it takes {taken}")


def fields_of(request: Request) -> list[str]:
    """The fields of the body that a request may have."""
    content = _operation(request).get("requestBody", {}).get("content", {})
    ref = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    schemas = request.app.openapi()["components"]["schemas"]
    return list(schemas.get(ref.rsplit("/", 1)[-1], {}).get("properties", ()))


def _operation(request: Request) -> dict[str, Any]:
    path = getattr(request.scope.get("route"), "path_format", "")
    methods = request.app.openapi()["paths"].get(path, {})
    found: dict[str, Any] = methods.get(request.method.lower(), {})
    return found
