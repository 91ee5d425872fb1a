"""The toolbox: what every framework's tools do, without a framework."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from memorist import (
    ConflictError,
    Extraction,
    InvalidError,
    Library,
    Memory,
    Message,
    Notebook,
    ScopeError,
    Window,
)
from memorist.agents.toolbox import (
    LONGEST_QUESTION,
    LONGEST_SAID,
    MOST_ARTICLES,
    MOST_HITS,
    MOST_TAGS,
    NAMES,
    Toolbox,
    tool_schemas,
)
from memorist.errors import MemoristError, StoreError
from memorist.server.http import schemas
from memorist.server.http.app import Limits
from tests.support.models import HungEmbedder

KINDS = {
    "store_concept": "concept",
    "store_episode": "episode",
    "store_fact": "fact",
    "store_procedure": "procedure",
    "store_working_memory": "working",
}


@pytest.fixture
def box(memory: Memory) -> Toolbox:
    return Toolbox(memory, user="ada", agent="tutor", session="s1")


def say(box: Toolbox, count: int) -> None:
    for number in range(count):
        box.store_session_message("s1", "ada", "user", f"I saw {number} swans on the lake today.")


def test_what_is_remembered_is_recalled_with_its_reason(box: Toolbox) -> None:
    stored = box.remember("I moved to Berlin in March.")
    found = box.recall("Berlin")
    assert found[0]["text"] == "I moved to Berlin in March."
    assert found[0]["id"] == stored["message_id"]
    assert "words" in found[0]["why"]
    assert found[0]["when"].startswith("20")
    assert stored["session_id"] == found[0]["session_id"] == "s1"


def test_a_name_is_not_taken_for_a_role(memory: Memory, box: Toolbox) -> None:
    memory.remember(Message("user", "My bike is red.", name="system"), user="ada", agent="tutor")
    [hit] = box.recall("bike")
    assert (hit["role"], hit["speaker"]) == ("user", "system")


def test_a_memory_names_its_message_and_what_is_over_is_marked(
    memory: Memory, box: Toolbox
) -> None:
    munich, berlin = (
        Message("user", f"I live in {city}.", created_at=datetime(2026, month, 2, tzinfo=UTC))
        for city, month in (("Munich", 3), ("Berlin", 4))
    )
    memory.remember([munich, berlin], user="ada", agent="tutor", session="s1")
    for said, city in ((munich, "Munich"), (berlin, "Berlin")):
        fact = "Ada", "lives in", city
        since, sources = said.created_at, (said.message_id,)
        memory.facts.add(*fact, user="ada", valid_from=since, sources=sources)
    memory.memories.add("Berlin suits Ada.", user="ada", sources=(berlin.message_id,))
    found = {hit["text"]: hit for hit in box.recall("Munich, Berlin")}
    assert found[munich.text]["over"] == "until April 2026"
    hit = found["Berlin suits Ada."]
    message = f"message {berlin.message_id[-8:]} of session s1, 2 April 2026"
    assert (hit["origin"], hit["over"]) == (f"from {message}", "")


def test_what_a_model_says_that_a_user_said_is_trusted_as_the_models_words(
    memory: Memory, box: Toolbox
) -> None:
    said = box.remember("I moved to Berlin in March.")
    kept = box.store_concept("A quorum is more than half of the members.")
    [entry] = memory.store.find(memory.scope(user="ada"), [said["message_id"]])
    [item] = memory.memories.list(user="ada")
    assert (entry.message.role, entry.source) == ("assistant", "assistant")
    assert (item.id, item.source) == (kept["id"], "assistant")


def test_a_search_that_could_not_be_made_is_no_empty_result() -> None:
    hung = HungEmbedder()
    with Memory(":memory:", embedder=hung, extraction=None) as memory:
        try:
            with pytest.raises(StoreError, match="meaning"):
                Toolbox(memory, user="ada").recall("anything")
        finally:
            hung.let_go.set()


@pytest.mark.parametrize(("tool", "kind"), KINDS.items())
def test_each_store_tool_keeps_its_kind(memory: Memory, box: Toolbox, tool: str, kind: str) -> None:
    kept = getattr(box, tool)("The build needs Python 3.11.", importance=0.9, tags=["build"])
    [item] = memory.memories.list(user="ada", agent="tutor")
    assert (kept["id"], kept["kind"], kept["why"]) == (item.id, kind, "")
    assert item.kind == kind
    assert item.importance == kept["importance"] == 0.9
    assert "build" in kept["tags"]
    assert bool(kept["expires_at"]) == (kind == "working")


def test_what_is_known_already_is_not_kept_twice(memory: Memory, box: Toolbox) -> None:
    box.store_fact("Ada speaks German and French.")
    again = box.store_fact("Ada speaks German and French.")
    assert not again["id"]
    assert "known" in again["why"]
    assert len(memory.memories.list(user="ada")) == 1


def test_a_fact_with_its_parts_becomes_a_link_and_replaces_what_cannot_hold_beside_it(
    memory: Memory, box: Toolbox
) -> None:
    def tell(city: str) -> str:
        statement = f"Ada lives in {city} now."
        return box.store_fact(statement, subject="Ada", predicate="lives in", object=city)[
            "fact_id"
        ]

    tell("Munich")
    newer = tell("Berlin")
    [fact] = memory.facts.list(user="ada", subject="Ada")
    assert (fact.id, fact.object) == (newer, "Berlin")
    assert len(memory.facts.as_of(user="ada")) == 2


def test_a_model_does_not_overrule_what_the_user_said(memory: Memory, box: Toolbox) -> None:
    memory.facts.add("Ada", "lives in", "Munich", user="ada", agent="tutor", single=True)
    kept = box.store_fact(
        "Ada lives in Berlin.", subject="Ada", predicate="lives in", object="Berlin"
    )
    assert not kept["fact_id"]
    assert "trusted" in kept["why"]
    assert [fact.object for fact in memory.facts.list(user="ada")] == ["Munich"]


def test_a_message_is_stored_word_for_word_with_what_was_told_of_it(
    memory: Memory, box: Toolbox
) -> None:
    done = replace(box, program=True).store_session_message(
        "s2",
        "ada",
        "human",
        '{"a": [1,  2]}\n',
        importance_score=0.4,
        message_type="humanmessage",
        message_id="m1",
    )
    assert done == {"message_id": "m1", "session_id": "s2", "role": "user", "stored": True}
    [message] = memory.history(user="ada", session="s2")
    assert (message.role, message.content) == ("user", '{"a": [1,  2]}\n')
    assert message.structured_data == {"importance_score": 0.4, "message_type": "humanmessage"}


def test_a_message_with_an_id_is_stored_once_whoever_stored_it(
    memory: Memory, box: Toolbox
) -> None:
    calls = [{"id": "c1", "name": "search", "args": {"q": "swans"}}]
    memory.remember(
        Message("assistant", "Let me look.", message_id="m1", tool_calls=calls),  # type: ignore[arg-type]
        user="ada",
        agent="tutor",
        session="s1",
    )
    for _ in range(2):
        again = box.store_session_message("s1", "ada", "ai", "Let me look.", message_id="m1")
        assert again["stored"] is False
    [message] = memory.history(user="ada", session="s1")
    assert message.tool_calls


@pytest.mark.parametrize("role", ["user", "human", "system", "developer", "tool", "assistant"])
def test_a_model_stores_as_the_assistant_whatever_role_it_names(
    memory: Memory, box: Toolbox, role: str
) -> None:
    memory.facts.add("user", "lives in", "Munich", user="ada", agent="tutor", single=True)
    for session, done in (
        ("s1", box.remember("I moved to Berlin.", role)),
        ("s2", box.store_session_message("s2", "ada", role, "I moved to Berlin.")),
    ):
        assert done["role"] == "assistant"
        [entry] = memory.messages.list(memory.scope(user="ada", session=session))
        assert entry.message.role == "assistant"
        assert entry.source == ("tool" if role == "tool" else "assistant")
        context = memory.context("And?", user="ada", agent="tutor", session=session)
        said = {it["role"] for it in context.messages if it["content"] == "I moved to Berlin."}
        assert said == {"assistant"}
    memory.jobs.catch_up(300)
    assert [fact.object for fact in memory.facts.list(user="ada")] == ["Munich"]


def test_a_program_says_who_said_it(memory: Memory, box: Toolbox) -> None:
    program = replace(box, program=True)
    for role in ("user", "system", "assistant"):
        done = program.store_session_message("s1", "ada", role, f"said by the {role}")
        assert done["role"] == role
        [entry] = memory.messages.get(memory.scope(user="ada"), [done["message_id"]])
        assert (entry.message.role, entry.source) == (role, "user" if role == "system" else role)


def test_a_model_may_not_change_who_said_what_is_stored(memory: Memory, box: Toolbox) -> None:
    said = Message("user", "yes", message_id="m1")
    memory.remember(said, user="ada", agent="tutor", session="s1")
    again = box.store_session_message("s1", "ada", "user", "yes", message_id="m1")
    assert (again["role"], again["stored"]) == ("user", False)
    with pytest.raises(ConflictError):
        box.store_session_message("s1", "ada", "tool", "yes", message_id="m1")


def test_another_message_under_the_same_id_is_refused(memory: Memory, box: Toolbox) -> None:
    box.store_session_message("s1", "ada", "user", "yes", message_id="m1")
    with pytest.raises(ConflictError):
        box.store_session_message("s1", "ada", "user", "no", message_id="m1")
    assert [message.content for message in memory.history(user="ada")] == ["yes"]


def test_the_same_message_sent_at_once_by_many_is_stored_once(memory: Memory, box: Toolbox) -> None:
    def send(_: int) -> bool:
        done = box.store_session_message("s1", "ada", "user", "only once", message_id="m1")
        return done["stored"]

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(send, range(24))) == 1
    assert len(memory.history(user="ada")) == 1


def test_a_session_is_summarised_where_something_is_new(memory: Memory, box: Toolbox) -> None:
    say(box, 12)
    first = box.summarize_session("s1", "ada")
    again = box.summarize_session("s1", "ada")
    assert first["updated"]
    assert first["messages"] == 8
    assert first["made_by"] == "extractive"
    assert "swans" in first["text"]
    assert again["text"] == first["text"]
    assert not again["updated"]
    assert "nothing new" in again["why"]
    assert len(memory.history(user="ada")) == 12


def test_forced_a_summary_stands_for_the_newest_messages_too(box: Toolbox) -> None:
    say(box, 12)
    box.summarize_session("s1", "ada")
    forced = box.summarize_session("s1", "ada", force_update=True)
    assert forced["updated"]
    assert forced["messages"] == 12
    assert forced["tokens_saved"] > 0


def test_a_session_without_messages_says_so(box: Toolbox) -> None:
    nothing = box.summarize_session("nowhere", "ada")
    assert not nothing["updated"]
    assert "not enough" in nothing["why"]


def test_notes_are_managed_for_the_user_and_agent(memory: Memory, box: Toolbox) -> None:
    assert box.manage_long_term_memory() == "The notes are empty."
    box.manage_long_term_memory("append", "## Plans\n- learn to sail")
    box.manage_long_term_memory("replace_section_by_header", "- fly", "Plans")
    assert Notebook(memory, user="ada", agent="tutor").read() == "## Plans\n- fly"
    with pytest.raises(InvalidError, match="needs content"):
        box.manage_long_term_memory("overwrite")


def test_articles_are_retrieved_as_far_as_the_window_has_room(memory: Memory) -> None:
    library = Library(memory, "handbook")
    library.add("Returns", "You may return it within 30 days. " * 40, "returns.md")
    window = Window(max_tokens=1_000, answer_tokens=0)
    box = Toolbox(memory, user="ada", library=library, window=window)
    [whole] = box.retrieve_context("How long may I return it?")
    assert whole["whole"]
    assert whole["citation"] == "Returns (returns.md)"
    [part] = box.retrieve_context("How long may I return it?", reserved_tokens=800)
    assert not part["whole"]
    assert part["tokens"] <= 200
    assert box.retrieve_context("How long may I return it?", reserved_tokens=1_000) == []


def test_a_toolbox_refuses_any_other_user(memory: Memory, box: Toolbox) -> None:
    with pytest.raises(ScopeError, match="another user"):
        box.store_session_message("s1", "bob", "user", "hello")
    with pytest.raises(ScopeError, match="another user"):
        box.summarize_session("s1", "bob")
    assert memory.sessions(user="bob") == []


def test_a_toolbox_for_many_takes_the_user_of_each_call(memory: Memory) -> None:
    many = Toolbox(memory)
    many.store_session_message("s1", "ada", "user", "My cat is called Zuse.")
    many.store_session_message("s1", "bob", "user", "My dog is called Turing.")
    many.for_user("ada").store_episode("Ada adopted a cat on Monday.")
    assert "Zuse" in many.for_user("ada").recall("pet called")[0]["text"]
    assert all("Zuse" not in hit["text"] for hit in many.for_user("bob").recall("cat Zuse"))
    with pytest.raises(ScopeError, match="give user_id"):
        many.recall("cat")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("recall", {"query": 5}),
        ("remember", {"content": "SECRET", "role": "SECRET"}),
        (
            "store_session_message",
            {"session_id": "", "user_id": "ada", "role": "user", "content": "SECRET"},
        ),
        ("store_concept", {"content": " "}),
        ("store_concept", {"content": "SECRET", "importance": 7}),
        ("store_concept", {"content": "SECRET", "tags": "SECRET"}),
        ("store_fact", {"content": "SECRET", "subject": "SECRET"}),
        ("manage_long_term_memory", {"operation": "SECRET"}),
        ("retrieve_context", {"query": "SECRET", "top_k": 0}),
        ("retrieve_context", {"query": "tea", "reserved_tokens": "SECRET"}),
    ],
)
def test_bad_input_is_refused_in_words_that_repeat_none_of_it(
    memory: Memory, tool: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(MemoristError) as refused:
        getattr(Toolbox(memory, user="ada"), tool)(**arguments)
    assert str(refused.value)
    assert "SECRET" not in str(refused.value)
    assert memory.memories.list(user="ada") == []


@pytest.mark.parametrize(
    ("tool", "arguments", "bound"),
    [
        ("recall", {"query": "bike", "limit": 0}, "1 to 200"),
        ("recall", {"query": "bike", "limit": 10**9}, "1 to 200"),
        ("recall", {"query": "bike", "limit": "all"}, "1 to 200"),
        ("recall", {"query": "a" * (LONGEST_QUESTION + 1)}, "200000 at most"),
        ("retrieve_context", {"query": "bike", "top_k": 101}, "1 to 100"),
        ("retrieve_context", {"query": "a" * (LONGEST_QUESTION + 1)}, "200000 at most"),
        ("remember", {"content": "a" * (LONGEST_SAID + 1)}, "8388608 at most"),
        ("store_episode", {"content": "ü" * 32_769}, "65,536 bytes"),
        ("store_episode", {"content": "We met.", "tags": ["a"] * 1_001}, "may be 1000"),
        (
            "manage_long_term_memory",
            {"operation": "append", "content": "a" * (LONGEST_SAID + 1)},
            "8388608 at most",
        ),
        (
            "store_fact",
            {"content": "So.", "subject": "a" * 65_537, "predicate": "is", "object": "so"},
            "65,536 bytes",
        ),
        (
            "store_session_message",
            {
                "session_id": "s1",
                "user_id": "ada",
                "role": "user",
                "content": "a" * (LONGEST_SAID + 1),
            },
            "8388608 at most",
        ),
    ],
)
def test_what_is_too_much_is_refused_with_the_bound(
    memory: Memory, box: Toolbox, tool: str, arguments: dict[str, Any], bound: str
) -> None:
    with pytest.raises(InvalidError, match=bound):
        getattr(box, tool)(**arguments)
    assert memory.history(user="ada") == []
    assert memory.memories.list(user="ada") == []


def test_the_bounds_are_those_of_http(box: Toolbox) -> None:
    assert schemas.MAX_ITEMS == MOST_TAGS
    assert Limits().body_bytes == LONGEST_SAID
    box.remember("My bike is in the cellar.")
    assert len(box.recall("bike" + " bike" * 1_000, limit=MOST_HITS)) == 1
    assert box.retrieve_context("bike", top_k=MOST_ARTICLES) == []


def test_every_result_is_plain_json(box: Toolbox) -> None:
    say(box, 6)
    results = [
        box.recall("swans"),
        box.remember("hello"),
        box.store_fact("Swans are white."),
        box.summarize_session("s1", "ada"),
        box.manage_long_term_memory(),
        box.retrieve_context("swans"),
    ]
    assert json.loads(json.dumps(results)) == results


def test_every_tool_and_argument_is_described_for_a_model() -> None:
    tools = {tool.name: tool for tool in tool_schemas()}
    assert tuple(tools) == NAMES
    for tool in tools.values():
        assert tool.description
        assert all(argument.description.endswith((".", "`.")) for argument in tool.arguments)
    message = {it.name: it.default for it in tools["store_session_message"].arguments}
    assert message == {
        "session_id": ...,
        "user_id": ...,
        "role": ...,
        "content": ...,
        "importance_score": 0.7,
        "message_type": "",
        "name": "",
        "tool_call_id": "",
        "status": "",
        "message_id": "",
        "tool_calls": [],
    }


def test_what_was_remembered_becomes_a_memory_in_the_background() -> None:
    with Memory(":memory:", embedder=None, extraction=Extraction()) as memory:
        Toolbox(memory, user="ada").remember("I moved to Berlin in March.")
        memory.jobs.catch_up(300)
        [fact] = memory.facts.list(user="ada")
        assert (fact.object, fact.source) == ("Berlin", "assistant")
