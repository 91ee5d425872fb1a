"""The HTTP API: FastAPI routes behind middleware, served by uvicorn."""

from importlib import import_module

from memorist.errors import needs_extra

with needs_extra("server"):
    for _package in ("fastapi", "jwt", "uvicorn"):
        import_module(_package)
