"""One router for each kind of thing."""

from recollect.server.http.routes.articles import router as articles
from recollect.server.http.routes.chat import router as chat
from recollect.server.http.routes.context import router as context
from recollect.server.http.routes.facts import router as facts
from recollect.server.http.routes.growing import router as growing
from recollect.server.http.routes.jobs import router as jobs
from recollect.server.http.routes.keys import router as keys
from recollect.server.http.routes.memories import router as memories
from recollect.server.http.routes.messages import router as messages
from recollect.server.http.routes.notes import router as notes
from recollect.server.http.routes.recall import router as recall
from recollect.server.http.routes.sessions import router as sessions
from recollect.server.http.routes.system import router as system
from recollect.server.http.routes.upkeep import router as upkeep

ROUTERS = [
    system, sessions, messages, growing, recall, context, memories, facts, notes, articles, jobs,
    upkeep, keys, chat,
]  # fmt: skip
