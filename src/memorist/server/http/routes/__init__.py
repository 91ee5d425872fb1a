"""The routers, one for each kind of thing."""

from memorist.server.http.routes import (
    articles,
    chat,
    context,
    entries,
    growing,
    keys,
    maintenance,
    memories,
    messages,
    notes,
    sessions,
    system,
)

ROUTERS = [
    module.router
    for module in (
        system,
        sessions,
        messages,
        growing,
        context,
        memories,
        notes,
        articles,
        entries,
        maintenance,
        keys,
        chat,
    )
]
