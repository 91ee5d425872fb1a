"""The MCP server: stdio and streamable HTTP."""

from memorist.errors import needs_extra

with needs_extra("mcp"):
    import mcp as _mcp  # noqa: F401
