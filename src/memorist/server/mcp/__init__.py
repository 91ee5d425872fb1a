"""The MCP server: stdio and streamable HTTP."""

from memorist.errors import MissingExtraError

try:
    import mcp as _mcp  # noqa: F401
except ImportError as error:
    raise MissingExtraError("mcp") from error
