"""One router for each kind of thing."""

from memorist.server.http.routes.articles import router as _articles
from memorist.server.http.routes.chat import router as _chat
from memorist.server.http.routes.context import router as _context
from memorist.server.http.routes.entries import router as _entries
from memorist.server.http.routes.facts import router as _facts
from memorist.server.http.routes.growing import router as _growing
from memorist.server.http.routes.jobs import router as _jobs
from memorist.server.http.routes.keys import router as _keys
from memorist.server.http.routes.memories import router as _memories
from memorist.server.http.routes.messages import router as _messages
from memorist.server.http.routes.notes import router as _notes
from memorist.server.http.routes.recall import router as _recall
from memorist.server.http.routes.sessions import router as _sessions
from memorist.server.http.routes.system import router as _system
from memorist.server.http.routes.upkeep import router as _upkeep

ROUTERS = [
    _system,
    _sessions,
    _messages,
    _growing,
    _recall,
    _context,
    _memories,
    _facts,
    _notes,
    _articles,
    _entries,
    _jobs,
    _upkeep,
    _keys,
    _chat,
]
