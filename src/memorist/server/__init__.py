"""What listens: the MCP server."""
