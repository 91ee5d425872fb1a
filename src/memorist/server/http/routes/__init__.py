"""The routers, one for each kind of thing."""

from memorist.server.http.routes.articles import router as _articles
from memorist.server.http.routes.chat import router as _chat
from memorist.server.http.routes.context import router as _context
from memorist.server.http.routes.entries import router as _entries
from memorist.server.http.routes.growing import router as _growing
from memorist.server.http.routes.keys import router as _keys
from memorist.server.http.routes.maintenance import router as _maintenance
from memorist.server.http.routes.memories import router as _memories
from memorist.server.http.routes.messages import router as _messages
from memorist.server.http.routes.notes import router as _notes
from memorist.server.http.routes.sessions import router as _sessions
from memorist.server.http.routes.system import router as _system

ROUTERS = [
    _system,
    _sessions,
    _messages,
    _growing,
    _context,
    _memories,
    _notes,
    _articles,
    _entries,
    _maintenance,
    _keys,
    _chat,
]
