"""One router for each kind of thing."""

from recollect.server.http.routes.articles import router as _articles
from recollect.server.http.routes.chat import router as _chat
from recollect.server.http.routes.context import router as _context
from recollect.server.http.routes.facts import router as _facts
from recollect.server.http.routes.growing import router as _growing
from recollect.server.http.routes.jobs import router as _jobs
from recollect.server.http.routes.keys import router as _keys
from recollect.server.http.routes.memories import router as _memories
from recollect.server.http.routes.messages import router as _messages
from recollect.server.http.routes.notes import router as _notes
from recollect.server.http.routes.recall import router as _recall
from recollect.server.http.routes.sessions import router as _sessions
from recollect.server.http.routes.system import router as _system
from recollect.server.http.routes.upkeep import router as _upkeep

ROUTERS = [
    _system, _sessions, _messages, _growing, _recall, _context, _memories, _facts, _notes,
    _articles, _jobs, _upkeep, _keys, _chat,
]  # fmt: skip
