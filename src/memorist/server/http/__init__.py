"""The memory over HTTP."""
