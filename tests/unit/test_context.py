"""Contexts through the public door: what goes in, what is cut, what it says of itself."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from memorist import AsyncMemory, InvalidError, Memory, Message, StoreUnavailableError, WindowError
from memorist.context.window import Context, Window
from memorist.lifecycle.settings import Extraction
from memorist.notebook import Notebook
from memorist.providers.openai_chat import OpenAIChat
from memorist.store.sqlite.store import SqliteStore
from tests.support.legal import check_anthropic, check_openai
from tests.support.model_server import FAILURES, ModelServer

PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACw="
SMALL = Window(max_tokens=1_000)


def said(context: Context) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in context.messages]


def talk(memory: Memory, turns: int, words: int = 12, **where: Any) -> Any:
    chat = memory.session(user="ada", agent="tutor", **where)
    for turn in range(turns):
        chat.add("user", f"question {turn} about {'sailing ' * words}")
        chat.add("assistant", f"answer {turn} about {'harbours ' * words}")
    return chat


def test_the_first_lines_of_the_readme(memory: Memory) -> None:
    chat = memory.session(user="ada", agent="tutor")
    chat.add("user", "I moved to Berlin in March. No more Munich commutes!")
    chat.add("assistant", "How is Berlin treating you?")
    window = chat.context("Plan my weekend", max_tokens=4_000)
    assert said(window) == [
        ("user", "I moved to Berlin in March. No more Munich commutes!"),
        ("assistant", "How is Berlin treating you?"),
        ("user", "Plan my weekend"),
    ]
    assert window.receipt.used == sum(part.tokens for part in window.receipt.parts)
    assert window.receipt.left == 4_000 - 500 - window.receipt.used  # an eighth for the answer


def test_what_was_said_elsewhere_is_quoted_above_the_question(memory: Memory) -> None:
    memory.session(user="ada", agent="tutor").add("user", "My boat is called Nixe.", name="Ada L.")
    chat = memory.session(user="ada", agent="tutor", new=True)
    context = chat.context(
        "What is my boat called?", max_tokens=500, system="Be brief.", deadline_ms=None
    )
    [(_, system), (_, question)] = said(context)
    assert system == "Be brief."
    _, _, header, name, quotation, empty, _, last = question.split("\n")
    assert (header, name, quotation) == ("user, named:", "> Ada L.:", "> My boat is called Nixe.")
    assert (empty, last) == ("", "What is my boat called?")
    memories = context.receipt.part("memories")
    assert memories.tokens > 0
    assert memories.ids == (memory.history(user="ada")[0].message_id,)


def test_the_question_is_there_once_though_it_was_stored_before(memory: Memory) -> None:
    chat = memory.session(user="ada")
    chat.add("user", "hello")
    chat.add("assistant", "hi")
    chat.add("user", "What now?")
    context = chat.context("What now?")
    assert said(context) == [("user", "hello"), ("assistant", "hi"), ("user", "What now?")]


def test_notes_stand_where_the_prompt_has_a_place_for_them(memory: Memory) -> None:
    Notebook(memory, user="ada", agent="tutor").append("# Plans\n- learn to sail")
    chat = memory.session(user="ada", agent="tutor")
    system = "You teach.\n{long_term_memory_notes}\nBe kind."
    [(_, prompt), _] = said(chat.context("hi", system=system))
    assert prompt == "You teach.\nYour notes, quoted:\n> # Plans\n> - learn to sail\nBe kind."
    [(_, prompt), _] = said(chat.context("hi", system="You teach."))
    assert prompt == "You teach.\n\nYour notes, quoted:\n> # Plans\n> - learn to sail"
    other = memory.session(user="ada", agent="cook")
    assert said(other.context("hi", system=system))[0] == ("system", "You teach.\n\nBe kind.")


def test_long_notes_are_cut_to_their_share_at_the_end_of_a_line(memory: Memory) -> None:
    Notebook(memory, user="ada").write("\n".join(f"- note number {n}" for n in range(500)))
    context = memory.context("hi", user="ada", window=SMALL)
    notes = context.receipt.part("notes")
    assert 100 < notes.tokens <= 200
    assert notes.cut > 0
    assert "share" in notes.why
    last = said(context)[0][1].splitlines()[-1]
    assert last.removeprefix("> - note number ").isdecimal()


def test_a_session_that_begins_with_its_prompt_keeps_it(memory: Memory) -> None:
    chat = memory.session(user="ada", agent="tutor")
    chat.add("system", "You are a pirate.")
    for _ in range(60):
        chat.add("user", "tell me more about the sea and all of its many ships")
    context = chat.context("and?", window=SMALL)
    assert said(context)[0] == ("system", "You are a pirate.")
    assert [role for role, _ in said(context)].count("system") == 1


def test_older_turns_become_a_summary_that_the_next_one_extends(memory: Memory) -> None:
    chat = talk(memory, 30)
    first = chat.context("and now?", window=SMALL).receipt.compression
    assert first is not None
    assert first.made_by == "extractive"
    assert len(first.message_ids) == first.summary.messages == 56
    assert first.saved > 0
    assert chat.context("and now?", window=SMALL).receipt.compression is None
    for turn in range(30, 60):
        chat.add("user", f"question {turn} about {'rigging ' * 12}")
        chat.add("assistant", f"answer {turn} about {'sails ' * 12}")
    context = chat.context("and now?", window=SMALL)
    second = context.receipt.compression
    assert second is not None
    assert second.summary.previous == first.summary.id
    assert second.summary.messages == 116
    assert len(second.message_ids) == 60
    assert context.messages[0]["content"].startswith("## Previous conversation:")
    assert [one.id for one in memory.summaries(user="ada", session=chat.id)] == [
        second.summary.id,
        first.summary.id,
    ]
    assert len(chat.history()) == 120  # the log keeps every turn


def test_a_larger_window_shows_again_what_a_smaller_one_summarised(memory: Memory) -> None:
    chat = talk(memory, 60)
    small = chat.context("and?", window=SMALL)
    assert small.receipt.compression is not None
    for turn in range(60, 90):
        chat.add("user", f"question {turn} about {'rigging ' * 12}")
    assert chat.context("and?", window=SMALL).receipt.compression is not None
    newest, first = memory.summaries(user="ada", session=chat.id)
    middle = chat.context("and?", window=Window(max_tokens=3_000)).receipt
    assert middle.part("summary").ids == (first.id,)
    assert len(middle.part("history").ids) == 34
    large = chat.context("and?", max_tokens=50_000).receipt
    assert large.part("summary").ids == ()
    assert len(large.part("history").ids) == 150
    assert chat.context("and?", window=SMALL).receipt.part("summary").ids == (newest.id,)


def test_what_is_short_already_is_not_summarised(memory: Memory) -> None:
    chat = memory.session(user="ada")
    for number in range(6):
        chat.add("user", f"{number}")
    window = Window(max_tokens=100, compress_at=0.1)
    assert chat.context("so?", window=window).receipt.compression is None
    assert memory.summaries(user="ada", session=chat.id) == []


def test_a_prompt_that_is_given_takes_the_place_of_the_sessions_own(memory: Memory) -> None:
    chat = memory.session(user="ada")
    chat.add("system", "You are a pirate.")
    chat.add("user", "hello")
    assert said(chat.context("so?", system="Be brief."))[:2] == [
        ("system", "Be brief."),
        ("user", "hello"),
    ]
    assert said(chat.context("so?", system="")) == [("user", "hello"), ("user", "so?")]


def test_a_summary_is_not_rewritten_at_every_turn(memory: Memory) -> None:
    chat = memory.session(user="ada", agent="tutor")
    harbours = "Genoa Lisbon Tunis Athens Oslo".split()
    sizes = []
    for turn in range(100):
        text = f"turn {turn}: the harbour of {harbours[turn % 5]} " * 8
        chat.add("user", text)
        done = chat.context(text, system="Be kind. " * 300).receipt.compression
        sizes += [len(done.message_ids)] if done is not None else []
        chat.add("assistant", f"answer {turn} " * 20)
    assert 2 <= len(sizes) <= 15
    assert min(sizes) > 4
    assert len(memory.summaries(user="ada", session=chat.id)) == len(sizes)


def test_another_agents_session_is_as_good_as_none(memory: Memory) -> None:
    coach = memory.session(user="ada", agent="coach")
    coach.add("user", "a secret between us")
    context = memory.context("so?", user="ada", agent="tutor", session=coach.id)
    assert said(context) == [("user", "so?")]
    assert said(memory.context("so?", user="ada", agent="coach", session=coach.id))[0] == (
        "user",
        "a secret between us",
    )


def test_a_result_that_comes_after_its_call_was_summarised_is_quoted(memory: Memory) -> None:
    chat = memory.session(user="ada")
    chat.add("user", "what is the tide?")
    chat.add("assistant", None, tool_calls=[{"id": "c1", "name": "tide", "arguments": "{}"}])
    for number in range(6):
        chat.add("user", f"still there? {number}")
    assert chat.compress() is not None
    chat.add("tool", "it falls", tool_call_id="c1")
    context = chat.context("and?", window=Window(memories=0))
    assert ("user", "A tool's result, quoted:\n> it falls") in said(context)


def test_many_calls_at_once_keep_their_results(memory: Memory) -> None:
    chat = memory.session(user="ada")
    for number in range(8):
        chat.add("user", f"hello {number}")
    calls = [{"id": f"c{n}", "name": "look", "arguments": "{}"} for n in range(80)]
    chat.add("assistant", None, tool_calls=calls)
    for number in range(80):
        chat.add("tool", f"result {number}", tool_call_id=f"c{number}")
    assert chat.compress() is not None
    context = chat.context("and?", window=Window(memories=0))
    assert sum(message["role"] == "tool" for message in context.messages) == 80


def test_a_model_that_raises_anything_leaves_the_summary(memory: Memory) -> None:
    class Broken:
        name = "broken"

        def complete(self, *_: Any, **__: Any) -> Any:
            raise ConnectionResetError("a secret")

    with Memory(":memory:", embedder=None, extraction=Extraction(model=Broken())) as opened:
        done = talk(opened, 10).compress()
        assert done is not None
        assert done.fell_back == "the model raised ConnectionResetError"


@pytest.mark.parametrize(
    "wrong", [{"answer_tokens": 8_000}, {"model": None}, {"notes": float("nan")}]
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidError):
        Window(**wrong)


@pytest.mark.parametrize("deadline_ms", [0, -1, float("nan"), "50"])
def test_a_deadline_is_a_time(memory: Memory, deadline_ms: Any) -> None:
    with pytest.raises(InvalidError, match="deadline_ms"):
        memory.context("hi", user="ada", deadline_ms=deadline_ms)


def test_a_prefix_can_be_set_and_compression_asked_for(memory: Memory) -> None:
    chat = talk(memory, 5)
    done = chat.compress(Window(keep_last=2))
    assert done is not None
    assert done.summary.messages == 8
    assert chat.compress(Window(keep_last=2)) is None
    context = chat.context("so?", window=Window(summary_prefix="Until now:", keep_last=2))
    assert context.messages[0]["content"].startswith("Until now:\n> ")
    assert context.receipt.part("summary").ids == (done.summary.id,)


def test_a_long_session_is_summarised_in_the_background() -> None:
    with Memory(":memory:", embedder=None) as memory:
        chat = talk(memory, 450)
        context = chat.context("and?", window=SMALL)
        assert context.receipt.compression is None
        assert "no summary" in context.receipt.part("history").why
        assert memory.jobs.catch_up(300) == 0
        context = chat.context("and?", window=SMALL)
        assert context.receipt.part("history").why == ""
        newest = memory.summaries(user="ada", session=chat.id)[0]
        assert newest.messages == 896
        assert context.receipt.part("summary").ids == (newest.id,)


def test_calls_of_tools_are_never_parted_from_their_results(memory: Memory) -> None:
    chat = memory.session(user="ada")
    for number in range(20):
        chat.add("user", f"look up number {number}")
        call = {"id": f"c{number}", "name": "look_up", "arguments": '{"n": 1}'}
        chat.add("assistant", None, tool_calls=[call])
        chat.add("tool", f"{number} is a fine number " * 10, tool_call_id=f"c{number}")
    for window in (300, 400, 600, 1_000, 5_000):
        for keep_last in (0, 1, 2, 3):
            context = chat.context("so?", window=Window(max_tokens=window, keep_last=keep_last))
            check_openai(context.messages)
            check_anthropic(context.for_anthropic())


def test_images_are_shown_and_counted(memory: Memory) -> None:
    chat = memory.session(user="ada")
    chat.remember(Message("user", "Look", images=[PIXEL]))
    chat.remember(Message("user", "and here", images=["nowhere.png"]))
    context = chat.context(Message("user", "What is it?", images=[PIXEL]))
    shown, lost, asked = (message["content"] for message in context.messages)
    assert shown[1]["image_url"]["url"] == asked[-1]["image_url"]["url"] == PIXEL
    assert lost == "and here\n(an image that cannot be read)"
    assert context.receipt.part("question").tokens > 255
    check_openai(context.messages)
    check_anthropic(context.for_anthropic())


def test_tools_take_their_tokens(memory: Memory) -> None:
    tool = {"type": "function", "function": {"name": "look_up", "description": "Looks it up"}}
    context = memory.context("hi", user="ada", tools=[tool])
    assert context.receipt.part("tools").tokens > 10
    assert context.tools == [tool]


def test_room_for_the_answer_stays_free(memory: Memory) -> None:
    chat = talk(memory, 20)
    window = Window(max_tokens=1_000, answer_tokens=400)
    receipt = chat.context("so?", window=window).receipt
    assert receipt.used <= 600
    assert receipt.window == receipt.used + receipt.answer + receipt.left


def test_what_cannot_fit_is_a_clear_error_and_loses_nothing(memory: Memory) -> None:
    with pytest.raises(WindowError, match=r"\d+ tokens more than the 50 of the window") as caught:
        memory.context("secret " * 100, user="ada", window=Window(max_tokens=50, answer_tokens=0))
    assert "secret" not in str(caught.value)
    for question in (7, None, "", "  ", Message("assistant", "I ask")):
        with pytest.raises(InvalidError):
            memory.context(question, user="ada")  # type: ignore[arg-type]
    with pytest.raises(InvalidError):
        memory.context("hi", user="ada", max_tokens=0)
    with pytest.raises(TypeError):
        memory.context("hi", user="ada", sytem="x")  # type: ignore[call-arg]


def test_another_users_words_are_never_there(memory: Memory) -> None:
    talk(memory, 3)
    memory.session(user="bob", agent="tutor").add("user", "sailing is my secret")
    chat = memory.session(user="bob", agent="tutor", id="his")
    context = chat.context("What about sailing?", deadline_ms=None)
    assert "harbours" not in str(context.messages)
    assert "my secret" in str(context.messages)


def test_the_receipt_is_logged_without_a_word_of_the_user(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    chat = talk(memory, 2)
    with caplog.at_level(logging.INFO, "memorist.context"):
        chat.context("sailing?", system="harbours", deadline_ms=None)
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("window 8,000, system ")
    for name in ("notes", "memories", "history", "articles", "left"):
        assert name in line
    assert "sailing" not in line
    assert "harbours" not in line


class Broken(SqliteStore):
    """A store that is away for whoever reads the views named."""

    away: tuple[str, ...] = ()

    def __getattribute__(self, name: str) -> Any:
        if name in object.__getattribute__(self, "away"):
            return self._fail
        return super().__getattribute__(name)

    def _fail(self, *_: Any, **__: Any) -> None:
        raise StoreUnavailableError("the store is away")


def test_a_store_that_is_away_leaves_the_question(caplog: pytest.LogCaptureFixture) -> None:
    store = Broken(":memory:")
    with Memory(store, embedder=None, extraction=None) as memory:
        chat = talk(memory, 2)
        store.away = ("history", "summary", "note", "following", "match_text", "newest")
        context = chat.context("still there?", system="Be kind.")
        assert said(context)[0] == ("system", "Be kind.")
        assert said(context)[-1] == ("user", "still there?")
        assert context.receipt.failed.keys() >= {"history", "summary", "notes"}
        assert "without its history" in caplog.text
        store.away = ()


def test_a_model_makes_the_summary_better_afterwards() -> None:
    answer = "## Request and intent\n- questions about sailing\n## Open tasks\n- harbours, all 30"
    with ModelServer(answers=lambda body: answer) as server:
        model = OpenAIChat("any", url=server.url)
        extraction = Extraction(model=model)
        with Memory(":memory:", embedder=None, extraction=extraction) as memory:
            chat = talk(memory, 30)
            done = chat.context("and?", window=SMALL).receipt.compression
            assert done is not None
            assert done.made_by == "extractive"  # nobody waited for the model
            memory._runtime.summarizer().catch_up(300)
            [newest] = memory.summaries(user="ada", session=chat.id)
            assert newest.made_by == model.name
            assert "harbours, all 30" in newest.text
            assert newest.last_seq == done.summary.last_seq
            assert "harbours, all 30" in str(chat.context("and?", window=SMALL).messages)


@pytest.mark.parametrize("mode", FAILURES)
def test_a_failing_summariser_degrades_to_extractive(mode: str) -> None:
    with ModelServer() as server:
        server.mode = mode  # type: ignore[assignment]
        extraction = Extraction(model=OpenAIChat("any", url=server.url), timeout_s=1.0)
        with Memory(":memory:", embedder=None, extraction=extraction) as memory:
            chat = talk(memory, 10)
            done = chat.compress()
            assert done is not None
            assert done.made_by == "extractive"
            assert done.fell_back
            assert "sailing" not in done.fell_back
            assert len(chat.history()) == 20


def test_a_models_budget_holds_for_summaries_too() -> None:
    with ModelServer(answers=lambda body: "## Open tasks\n- none") as server:
        model = OpenAIChat("any", url=server.url)
        extraction = Extraction(model=model, calls_per_hour=0)
        with Memory(":memory:", embedder=None, extraction=extraction) as memory:
            done = talk(memory, 10).compress()
            assert done is not None
            assert "budget" in done.fell_back
            assert server.requests == []


def test_the_same_for_asyncio() -> None:
    async def story() -> None:
        async with AsyncMemory(":memory:", embedder=None, extraction=None) as memory:
            chat = await memory.session(user="ada")
            for number in range(12):
                await chat.add("user", f"word {number}")
            assert (await chat.context("so?", max_tokens=900)).messages[-1]["role"] == "user"
            assert (await memory.context("so?", user="ada")).receipt.window == 8_000
            done = await chat.compress()
            assert done is not None
            assert await memory.compress(user="ada", session=chat.id) is None
            assert await memory.summaries(user="ada", session=chat.id) == [done.summary]

    asyncio.run(story())


def test_a_question_is_not_taken_for_one_that_shows_another_image(memory: Memory) -> None:
    chat = memory.session(user="ada", agent="tutor")
    chat.remember(Message("user", "What is this?", images=[PIXEL]))
    other = PIXEL.replace("AAAA", "AAAB")
    shown = chat.context(Message("user", "What is this?", images=[other])).messages
    assert [message["content"][-1]["image_url"]["url"] for message in shown] == [PIXEL, other]
    shown = chat.context(Message("user", "What is this?", images=[PIXEL])).messages
    assert len(shown) == 1


def test_what_came_of_a_stream_after_its_compression_is_not_lost(memory: Memory) -> None:
    chat = talk(memory, turns=6)
    with chat.stream() as stream:
        stream.write("Let me think. ")
        stream.flush()
        for turn in range(5):
            chat.add("user", f"still there {turn}?")
        assert chat.compress() is not None
        stream.write("The safe opens with 4711.")
    context = chat.context("Which number?", window=Window(memories=0))
    assert "opens with 4711" in str(context.messages)


@pytest.mark.parametrize("role", ["user", "system"])
def test_only_an_assistant_calls_tools(memory: Memory, role: str) -> None:
    chat = memory.session(user="ada", agent="tutor")
    call = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
    chat.add("user", "Good morning")
    chat.add(role, "odd", tool_calls=[call])
    chat.add("tool", "nothing", tool_call_id="c1")
    context = chat.context("Hi", window=Window(memories=0))
    check_openai(context.messages)
    check_anthropic(context.for_anthropic())
    late = "A tool's result, quoted:\n> nothing"
    assert [content for _, content in said(context)] == ["Good morning", "odd", late, "Hi"]
