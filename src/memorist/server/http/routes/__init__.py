"""The router of the API with all of its routes, which these modules add to it."""

from memorist.server.http.routes import (  # noqa: F401
    chat,
    context,
    documents,
    entries,
    maintenance,
    memories,
    messages,
    system,
)
from memorist.server.http.routing import router as router
