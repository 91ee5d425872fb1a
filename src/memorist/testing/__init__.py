"""For users' tests: a chat model that follows a script."""
