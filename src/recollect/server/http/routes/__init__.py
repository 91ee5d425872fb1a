"""One router for each kind of thing."""

from recollect.server.http.routes import (
    articles,
    chat,
    context,
    facts,
    growing,
    jobs,
    keys,
    memories,
    messages,
    notes,
    recall,
    sessions,
    system,
    upkeep,
)

ROUTERS = [
    module.router
    for module in (
        system, sessions, messages, growing, recall, context, memories, facts, notes, articles,
        jobs, upkeep, keys, chat,
    )
]  # fmt: skip
