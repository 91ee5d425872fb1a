"""The servers: the HTTP API with the page, and MCP; keys, logs and the worker process."""
