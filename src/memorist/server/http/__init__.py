"""The HTTP API: FastAPI routes behind middleware, served by uvicorn."""

from importlib.util import find_spec

from memorist.errors import needs_extra

with needs_extra("server"):
    if not all(map(find_spec, ("fastapi", "jwt", "uvicorn"))):  # tokens alone need to import jwt
        raise ImportError("there is no server without them")
