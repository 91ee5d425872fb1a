"""The tools of a chat assistant: few, with short definitions and answers that are texts.

`remember`, `recall` and `list` give ids, by which `forget` and `correct` work; given words instead,
these show what the words match and change nothing.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args

from memorist.agents.tool_schema import ToolSchema, schema_of, tool
from memorist.agents.toolbox import (
    DEADLINE_MS,
    LONGEST_QUESTION,
    NAMES,
    WRITER,
    Header,
    NoteText,
    Operation,
    Question,
    Toolbox,
    check_count,
    check_length,
    tool_schemas,
)
from memorist.errors import InvalidError, NotFoundError
from memorist.language.unsafe import find_secrets, injections
from memorist.lifecycle.rules import extract
from memorist.records.memories import CORRECTED, Fact, MemoryItem
from memorist.records.message import Message
from memorist.records.query import Hit

ToolSet = Literal["assistant", "revise", "all"]
TOOL_SETS: tuple[ToolSet, ...] = get_args(ToolSet)
NOTHING = "Nothing is remembered about this."
MOST_LISTED = 100
MATCHES = 5  # that are shown for words
DERIVED = 50  # memories looked at for those of one message
CATCH_UP_S = 2.0  # for what was just said
LONGEST_MEMORY = 2_000  # characters
SHOWN = 400  # characters of a text

Said = Annotated[str, "In the user's own words where you can, as in `I live in Munich.`"]
Which = Annotated[str, "An id from recall or list. Words only show what they match."]
Right = Annotated[str | None, "What is right now: the whole statement, in the user's words."]
Undo = Annotated[bool, "Instead of a text: take the last correction of this id back."]
About = Annotated[str | None, "Only those with these words."]
Most = Annotated[int, "How many at most."]


class Known(NamedTuple):
    """Something remembered, by its id."""

    kind: str
    id: str
    text: str
    day: str
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, it: Hit | MemoryItem | Fact) -> "Known":
        """A hit, a memory or a fact."""
        if isinstance(it, Hit):
            return cls(it.kind, it.id, it.text, f"{it.created_at:%Y-%m-%d}")
        kind, at = ("fact", it.known_from) if isinstance(it, Fact) else ("memory", it.created_at)
        return cls(kind, it.id, it.text, f"{at:%Y-%m-%d}", it.sources)

    def __str__(self) -> str:
        text = " ".join(self.text.split())
        return f"[{self.id}] {self.day} {self.kind}: {text[:SHOWN]}{'…' * (len(text) > SHOWN)}"


@cache
def load_rules() -> None:
    """Load the rules that `remember` reads by, so that its first call need not take a second."""
    extract(Message("user", "I live in Munich."), WRITER)


@tool
def remember(box: Toolbox, content: Said) -> str:
    """Keep something for all later conversations.

    Use it when the user asks for it, or tells what will matter later. Returns its id.
    """
    stored = box.remember(content)["message_id"]
    safe = len(content) <= LONGEST_MEMORY and not find_secrets(content) and not injections(content)
    made = safe and any(one.text for one in extract(Message("user", content), WRITER))
    if safe and not made:  # else extraction makes a memory of it
        _keep(box, content, stored)
    return f"Remembered [{stored}]."


@tool
def recall(box: Toolbox, query: Question, limit: Most = 5) -> str:
    """Search what is remembered from all past conversations with the user.

    Use it before you answer what may have come up before, or say that you do not know. Returns
    lines with id, date and text, best first; what holds no longer is marked.
    """
    hits = sorted(box.recall(query, limit), key=lambda hit: bool(hit["over"]))
    lines = []
    for hit in hits:
        known = Known(hit["role"] or hit["kind"], hit["id"], hit["text"], hit["when"][:10])
        lines.append(f"{known} ({hit['over']})" if hit["over"] else str(known))
    return "\n".join(lines) or NOTHING


@tool
def list_known(box: Toolbox, words: About = None, limit: Most = 20) -> str:
    """List what is known about the user, newest first, with ids.

    Use it when they ask what you know about them, or to find what to forget or correct.
    """
    check_count(limit, MOST_LISTED, "limit")
    check_length(words, LONGEST_QUESTION, "words")
    box.memory.jobs.catch_up(CATCH_UP_S)
    items = box.memory.memories.list(
        user=box.user_id, agent=box.agent, text=words, newest_first=True, limit=limit
    )
    facts = box.memory.facts.list(
        user=box.user_id, agent=box.agent, text=words, newest_first=True, limit=limit
    )
    listed = {item.id for item in items}
    rest = [fact for fact in facts if fact.memory not in listed]
    known = [Known.of(item) for item in items] + [Known.of(fact) for fact in rest]
    return _lines(known[:limit]) or NOTHING


@tool
def forget(box: Toolbox, id: Which) -> str:
    """Remove something for good, with everything made of it. It cannot be undone.

    Use it when the user wants something forgotten; if it is only out of date, use correct.
    Returns what is gone.
    """
    known = _find(box, id)
    if known is None:
        return _matches(box, id, "forget")
    went = _going(box, known)
    box.memory.forget(user=box.user_id, **_named(known))
    left = [one for source in known.sources if (one := _find(box, source))]
    stays = "\nStill there is what it was made of; forget that too?\n" if left else ""
    return f"Gone for good: {went}{stays}{_lines(left)}"


@tool
def correct(box: Toolbox, id: Which, text: Right = None, undo: Undo = False) -> str:
    """Replace something that is wrong or out of date, as when the user says "no, I moved".

    The old stays as history. Returns the old and the new, whose id undoes it.
    """
    if bool(text) == undo:
        raise InvalidError("give text, or else undo")
    box.memory.jobs.catch_up(CATCH_UP_S)
    if undo:
        box.memory.memories.undo(_bare(id), user=box.user_id)
        return "The last correction was taken back."
    known = _find(box, id)
    if known is None:
        return _matches(box, id, "correct")
    made = _made_of(box, known)
    if len(made) > 1:
        return f"Several things were made of this; correct one of them:\n{_lines(made)}"
    old = made[0].id if made else ""
    if not made and known.kind == "message":
        old = _keep(box, known.text, known.id)
    elif not made:
        box.memory.memories.retract(known.id, user=box.user_id, reason=CORRECTED)
    if not old:
        return f"{remember(box, text or '')}\nBefore: {known}"
    said = box.remember(text or "")["message_id"]
    new = box.memory.memories.change(old, user=box.user_id, text=text or "", said_in=said)
    return f"Now [{new}]: {text}\nBefore: {known}"


@tool
def notes(
    box: Toolbox,
    operation: Operation = "read",
    content: NoteText = None,
    section_header: Header = None,
) -> str:
    """Read or edit your notes: one Markdown text about the user, kept over conversations.

    Use it for what you want at hand every time.
    """
    return box.manage_long_term_memory(operation, content, section_header)


TOOLS: dict[str, Callable[..., str]] = {
    "remember": remember,
    "recall": recall,
    "forget": forget,
    "correct": correct,
    "list": list_known,
    "notes": notes,
}
ADDED = ("forget", "correct", "list")  # to those of the toolbox, of which the others are forms
READING = ("recall", "list")
REVISING = tuple(name for name in NAMES if name.startswith(("store_", "summarize_")))


def tools_for(purpose: ToolSet) -> list[ToolSchema]:
    """The tools of a set: those of a chat's assistant, those of a revise node, or all."""
    if purpose not in TOOL_SETS:
        raise InvalidError(f"the tool sets are {', '.join(TOOL_SETS)}")
    own = [schema_of(it, name=name, reads=name in READING) for name, it in TOOLS.items()]
    if purpose == "assistant":
        return own
    if purpose == "revise":
        return [tool for tool in tool_schemas() if tool.name in REVISING]
    return [*tool_schemas(), *(tool for tool in own if tool.name in ADDED)]


def _find(box: Toolbox, id_: str) -> Known | None:
    """What has this id; None if nothing does."""
    id_, user, memory = _bare(id_), box.user_id, box.memory
    for entry in memory.messages.get(memory.scope(user=user), [id_], limit=1):
        message = entry.message
        return Known("message", id_, message.text, f"{message.created_at:%Y-%m-%d}")
    for get in (memory.memories.get, memory.facts.get):
        try:
            return Known.of(get(id_, user=user))
        except NotFoundError:
            pass
    return None


def _bare(id_: str) -> str:
    check_length(id_, LONGEST_QUESTION, "id")
    return id_.strip(" []")


def _named(known: Known) -> dict[str, Any]:
    return {"message" if known.kind == "message" else "memory": known.id}


def _going(box: Toolbox, known: Known) -> str:
    """What would go, and what goes with it."""
    counts = box.memory.forget(user=box.user_id, **_named(known), dry_run=True).counts
    made = [f"{name}: {counts[name]}" for name in ("memories", "facts") if counts.get(name)]
    is_source = made and known.kind == "message"
    return f"{known} and what was made of it ({', '.join(made)})" if is_source else str(known)


def _matches(box: Toolbox, words: str, tool: str) -> str:
    """What words match, which changes nothing."""
    found = box.memory.recall(
        words,
        user=box.user_id,
        agent=box.agent,
        limit=MATCHES,
        deadline_ms=DEADLINE_MS,
        kind=("message", "memory", "fact"),
    )
    if not found.hits:
        return NOTHING
    lines = [_going(box, Known.of(hit)) for hit in found.hits]
    return f"Nothing changed yet. Call {tool} with the id that the user means:\n" + _lines(lines)


def _made_of(box: Toolbox, known: Known) -> list[Known]:
    """The memories that may be corrected: of a message, those made of it; or the one itself."""
    user, memory = box.user_id, box.memory
    if known.kind == "memory":
        return [known]
    if known.kind == "fact" and (stating := memory.facts.get(known.id, user=user).memory):
        return [Known.of(memory.memories.get(stating, user=user))]
    about = known.text[:LONGEST_MEMORY]
    found = memory.recall(
        about, user=user, limit=DERIVED, min_score=0, deadline_ms=None, kind="memory"
    )
    cited = [hit for hit in found.hits if known.id in {it.message_id for it in hit.sources}]
    return [Known.of(hit) for hit in cited]


def _keep(box: Toolbox, text: str, message_id: str) -> str:
    """Keep a message's text as a memory; its id, or nothing if it is long or known already."""
    if len(text) > LONGEST_MEMORY:
        return ""
    return box.memory.memories.add(
        text, user=box.user_id, agent=box.agent, source=WRITER, sources=(message_id,)
    )


def _lines(them: Iterable[object]) -> str:
    return "\n".join(map(str, them))
