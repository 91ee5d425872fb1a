"""The receipt's parts: what each takes, such that their sum is the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memorist.context.assemble import Draft
from memorist.context.chat_format import Wire
from memorist.context.quote import Quote
from memorist.context.tokens import Counter
from memorist.context.window import Part

NO_ROOM = "no room in the window"
SHORTENED = "shortened to its share of the window"
NOT_SUMMARISED = "there is more, which no summary stands for yet"


def parts_of(draft: Draft, counter: Counter) -> tuple[Part, ...]:
    """System, tools, notes, summary, history, memories, articles and question.

    Notes and recalled words share a message with others: they take by how much it grew.
    """
    system = _sum(counter, replace(draft, note="").system())
    notes = _sum(counter, draft.system()) - system
    opening = _sum(counter, draft.opening())
    question = counter.wires([replace(draft, memories=(), articles=()).question()])
    memories = counter.wires([replace(draft, articles=()).question()]) - question
    articles = counter.wires([draft.question()]) - question - memories
    tools = draft.material.tools
    return (
        Part("system", system),
        Part("tools", counter.tools(tools) if tools else 0),
        _note(draft, notes),
        _summary(draft, opening if draft.summary else 0),
        _history(draft, sum(one.tokens for one in draft.blocks) + opening * (not draft.summary)),
        _memories(draft, memories),
        Part("articles", articles, _ids(draft.articles)),
        Part("question", question),
    )


def _note(draft: Draft, tokens: int) -> Part:
    cut = len(draft.material.note.strip()) - len(draft.note)
    return Part("notes", tokens, cut=cut, why=SHORTENED if cut else "")


def _summary(draft: Draft, tokens: int) -> Part:
    given = draft.material.summary
    if given is None:
        return Part("summary")
    cut = len(given.text.strip()) - len(draft.summary)
    return Part("summary", tokens, (given.id,), cut, SHORTENED if cut else "")


def _history(draft: Draft, tokens: int) -> Part:
    ids = tuple(id_ for one in draft.blocks for id_ in one.ids)
    cut = sum(len(one.ids) for one in draft.material.blocks) - len(ids)
    why = [NO_ROOM] * bool(cut) + [NOT_SUMMARISED] * draft.material.older
    return Part("history", tokens, ids, cut, "; ".join(why))


def _memories(draft: Draft, tokens: int) -> Part:
    ids = _ids(draft.memories)
    shown = {*ids, *(id_ for one in draft.blocks for id_ in one.ids)}
    cut = sum(quote.id not in shown for quote in draft.material.memories)
    return Part("memories", tokens, ids, cut, NO_ROOM if cut else "")


def _ids(quotes: Sequence[Quote]) -> tuple[str, ...]:
    return tuple(quote.id for quote in quotes)


def _sum(counter: Counter, wires: Sequence[Wire]) -> int:
    return sum(map(counter.wire, wires))
