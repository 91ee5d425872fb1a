"""Paths: what stands between two slashes may hold any character, slashes included."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

SLASH = "\udc2f"  # stands for a slash inside a part; no text that was decoded holds it


class Parts(APIRoute):
    """A route whose parts are told apart before they are decoded, so that `%2F` ends none."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the route is the one for a request."""
        raw: bytes = scope.get("raw_path") or b""
        if b"%2f" not in raw.lower():
            return super().matches(scope)
        match, child = super().matches({**scope, "path": _path(raw)})
        for name, value in child.get("path_params", {}).items():
            if isinstance(value, str):
                child["path_params"][name] = value.replace(SLASH, "/")
        return match, child


def _path(raw: bytes) -> str:
    parts = [unquote_to_bytes(part).decode("utf-8", "replace") for part in raw.split(b"/")]
    return "/".join(part.replace("/", SLASH) for part in parts)
