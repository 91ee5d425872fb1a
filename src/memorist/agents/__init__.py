"""The agent's side: messages as its framework has them, tools, middleware."""
