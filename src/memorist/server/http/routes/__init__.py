"""The routers, one for each kind of thing."""

from memorist.server.http.routes import (
    articles,
    chat,
    context,
    entries,
    facts,
    growing,
    jobs,
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
        facts,
        notes,
        articles,
        entries,
        jobs,
        maintenance,
        keys,
        chat,
    )
]
