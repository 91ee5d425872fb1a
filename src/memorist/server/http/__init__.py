"""The HTTP API: FastAPI routes behind middleware, served by uvicorn."""

from importlib import import_module

from memorist.errors import MissingExtraError

for _package in ("fastapi", "jwt", "uvicorn"):
    try:
        import_module(_package)
    except ImportError as error:
        raise MissingExtraError("server") from error
