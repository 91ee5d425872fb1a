"""Our MCP server with what the official conformance suite looks for by name.

    python -m tests.support.mcp_conformance database      # prints its port

The suite cannot show a key, so everybody is one user here; hosts are checked as in the real app.
"""

from __future__ import annotations

import asyncio
import base64
import zlib
from typing import Any

from mcp.server.fastmcp import Context
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import AudioContent, EmbeddedResource, ImageContent, TextContent

from memorist import Memory
from memorist.records.scope import Principal
from memorist.server.http.middleware import TrustedHosts, TrustedOrigins
from memorist.server.mcp.http import McpApp
from tests.support.mcp_http import main, make_app


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)


PIXEL = b"".join(
    (
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", bytes((0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0))),
        _chunk(b"IDAT", zlib.compress(bytes(4))),
        _chunk(b"IEND", b""),
    )
)
SILENCE = b"RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00" + bytes(20)
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def _image() -> ImageContent:
    data = base64.b64encode(PIXEL).decode()
    return ImageContent.model_validate({"type": "image", "data": data, "mimeType": "image/png"})


def _resource(uri: str, text: str, kind: str = "text/plain") -> EmbeddedResource:
    held = {"uri": uri, "mimeType": kind, "text": text}
    return EmbeddedResource.model_validate({"type": "resource", "resource": held})


def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


def test_image_content() -> Any:
    """Give an image."""
    return [_image()]


def test_audio_content() -> Any:
    """Give a sound."""
    data = base64.b64encode(SILENCE).decode()
    told = {"type": "audio", "data": data, "mimeType": "audio/wav"}
    return [AudioContent.model_validate(told)]


def test_embedded_resource() -> Any:
    """Give a resource."""
    return [_resource("test://embedded-resource", "This is an embedded resource content.")]


def test_multiple_content_types() -> Any:
    """Give a text, an image and a resource."""
    text = TextContent(type="text", text="Multiple content types test:")
    held = '{"test":"data","value":123}'
    return [text, _image(), _resource("test://mixed-content-resource", held, "application/json")]


async def test_tool_with_logging(ctx: Context[Any, Any, Any]) -> str:
    """Log three times."""
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(said)
        await asyncio.sleep(0.05)
    return "logged"


async def test_tool_with_progress(ctx: Context[Any, Any, Any]) -> str:
    """Tell of progress three times."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await asyncio.sleep(0.05)
    return "done"


def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


def json_schema_2020_12_tool(name: str = "", address: Any = None) -> str:
    """Take what a schema with all the newer words tells of."""
    return "taken"


TOOLS = {
    test_simple_text: [],
    test_image_content: [],
    test_audio_content: [],
    test_embedded_resource: [],
    test_multiple_content_types: [],
    test_tool_with_logging: [],
    test_tool_with_progress: [],
    test_error_handling: [],
    json_schema_2020_12_tool: ["name", "address"],
}


def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


def static_binary() -> bytes:
    """An image."""
    return PIXEL


def watched_resource() -> str:
    """A text that could change."""
    return "Watched resource content"


def template(id: str) -> str:
    """A text of a template."""
    return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'


def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> Any:
    """A prompt with a resource."""
    held = _resource(resourceUri, "Embedded resource content for testing.")
    return [
        {"role": "user", "content": held.model_dump(by_alias=True, mode="json")},
        {"role": "user", "content": "Please process the embedded resource above."},
    ]


def test_prompt_with_image() -> Any:
    """A prompt with an image."""
    return [
        {"role": "user", "content": _image().model_dump(by_alias=True, mode="json")},
        {"role": "user", "content": "Please analyze the image above."},
    ]


def add_fixtures(server: Any) -> None:
    """Lay what the suite calls over what we offer."""
    for tool, takes in TOOLS.items():
        server.arguments[tool.__name__] = takes
        server.add_tool(tool, name=tool.__name__, structured_output=False)
    server._tool_manager.get_tool("json_schema_2020_12_tool").parameters = SCHEMA
    server.resource("test://static-text", mime_type="text/plain")(static_text)
    server.resource("test://static-binary", mime_type="image/png")(static_binary)
    server.resource("test://watched-resource", mime_type="text/plain")(watched_resource)
    server.resource("test://template/{id}/data", mime_type="application/json")(template)
    for prompt in (
        test_simple_prompt,
        test_prompt_with_arguments,
        test_prompt_with_embedded_resource,
        test_prompt_with_image,
    ):
        server.prompt()(prompt)


class Everybody:
    """Takes whoever asks for one user."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Name the caller."""
        principal = Principal(tenant="acme", user="ada")
        scope.setdefault("state", {})["principal"] = principal
        await self.app(scope, receive, send)


def make(memory: Memory) -> Any:
    """The app with the fixtures."""
    door = McpApp(memory)
    add_fixtures(door.servers["all"])
    return TrustedHosts(TrustedOrigins(Everybody(make_app(memory, door))))


if __name__ == "__main__":
    main(make)
