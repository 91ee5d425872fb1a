"""The ChatModel contract, and what its implementations share: a time limit, counts of tokens."""

import contextvars
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from memorist.errors import ProviderError
from memorist.providers.daemon_pool import DaemonPool, Task

BYTES_PER_TOKEN = 4  # bytes, not characters: other scripts than Latin cost more
MAX_ABANDONED = 8

T = TypeVar("T")
ChatMessages = Sequence[Mapping[str, str]]
"""Messages of the form {"role": …, "content": …}."""
Schema = Mapping[str, Any] | None
"""The JSON schema that an answer should have, if any."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer and its cost; `estimated` if the provider gave no token counts."""

    text: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False

    @property
    def tokens(self) -> int:
        """What the question and the answer cost together."""
        return self.input_tokens + self.output_tokens


class ChatModel(Protocol):
    """Answers messages of the form {"role": …, "content": …}.

    With `schema`, the text is meant to be JSON of that shape; the caller checks. Every failure
    is a `ProviderError`, and comes within `timeout_s`; nothing is retried.
    """

    name: str

    def complete(
        self, messages: ChatMessages, *, max_tokens: int, timeout_s: float, schema: Schema = None
    ) -> Reply: ...


class CallTimeout:
    """Runs calls to a model in threads, each with a time limit.

    A socket's timeout begins anew with every byte and does not cover the lookup of a host, and a
    library may have none at all. A call that is late goes on in its thread, abandoned; while
    `MAX_ABANDONED` of them do, new calls are refused. Only `native` calls are waited for when the
    process ends.
    """

    def __init__(self, who: str, *, native: bool = True) -> None:
        self._who = who
        self._pool = DaemonPool(MAX_ABANDONED, native=native)

    def run(self, work: Callable[[], T], timeout_s: float) -> T:
        """What `work` returns or the ProviderError it raises; another one when time is up."""
        context = contextvars.copy_context()  # so that a host's tracing finds its parent
        task = Task(lambda: context.run(work))
        if not self._pool.start(task, at_once=True):
            raise ProviderError(f"{self._who} is still busy with {MAX_ABANDONED} calls")
        if not task.wait(timeout_s):
            task.drop()
            raise ProviderError(f"{self._who} gave no answer in {timeout_s:g} s")
        if task.error is None or isinstance(task.error, ProviderError):
            return task.result()
        raise ProviderError(f"{self._who} failed unexpectedly ({type(task.error).__name__})")


def estimate_tokens_of(text: str) -> int:
    """About how many tokens a text has, where the provider gives no number."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def make_reply(
    text: str, messages: ChatMessages, input_tokens: object, output_tokens: object
) -> Reply:
    """A reply with the tokens that the provider counted, or an estimate where it gave none."""
    numbers = [number for number in (input_tokens, output_tokens) if type(number) is int]
    if len(numbers) == 2 and all(0 <= number < 2**40 for number in numbers):
        return Reply(text, numbers[0], numbers[1])
    asked = sum(estimate_tokens_of(message["content"]) for message in messages)
    return Reply(text, asked, estimate_tokens_of(text), estimated=True)


def content_text(content: object) -> str:
    """The text of a message's content, given as text or in parts; reasoning is left out."""
    parts: list[Any] = content if isinstance(content, list) else [content]
    texts = [
        part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else part
        for part in parts
    ]
    return "".join(text for text in texts if isinstance(text, str))
