"""The chat model protocol, and the patience with which any model is asked."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from memorist.errors import ProviderError

BYTES_PER_TOKEN = 4  # bytes, not characters: other scripts than Latin cost more
MOST_LEFT_BEHIND = 8

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered, and what it cost; `estimated` if the provider did not tell."""

    text: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False


class ChatModel(Protocol):
    """Answers messages of the form {"role": …, "content": …}.

    With `schema`, the text is meant to be JSON of that shape; the caller checks. Every failure
    is a `ProviderError`, and comes within `timeout_s`; nothing is retried.
    """

    name: str

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        timeout_s: float,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply: ...


class Patience:
    """Asks `who` for a limited time; a call that does not end is left behind, and few may be.

    A socket's timeout begins anew with every byte and does not cover the lookup of a host; a
    library's may not exist at all. A thread that nobody waits for keeps any promise.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._places = threading.BoundedSemaphore(MOST_LEFT_BEHIND)

    def run(self, work: Callable[[], T], timeout_s: float) -> T:
        """What `work` returns or the `ProviderError` it raises; another one when time is up."""
        if not self._places.acquire(blocking=False):
            raise ProviderError(f"{self._who} is still busy with {MOST_LEFT_BEHIND} calls")
        done: queue.SimpleQueue[Callable[[], T]] = queue.SimpleQueue()
        context = contextvars.copy_context()  # so that a host's tracing finds its parent
        threading.Thread(target=context.run, args=(self._call, work, done), daemon=True).start()
        try:
            outcome = done.get(timeout=timeout_s)
        except queue.Empty:
            raise ProviderError(f"{self._who} gave no answer in {timeout_s:g} s") from None
        return outcome()

    def _call(self, work: Callable[[], T], done: queue.SimpleQueue[Callable[[], T]]) -> None:
        outcome = _raiser(ProviderError(f"{self._who} failed unexpectedly; see the log"))
        try:
            result = work()
            outcome = lambda: result  # noqa: E731
        except ProviderError as error:
            outcome = _raiser(error)
        finally:
            self._places.release()
            done.put(outcome)


def _raiser(error: ProviderError) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def estimate_tokens_of(text: str) -> int:
    """About how many tokens a text has, for want of the provider's own number."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def make_reply(
    text: str, messages: Sequence[Mapping[str, str]], given: object, wanted: object
) -> Reply:
    """A reply with the tokens the provider counted, or an estimate where it told nonsense."""
    if _is_count(given) and _is_count(wanted):
        return Reply(text, given, wanted)  # type: ignore[arg-type]  # just checked
    asked = sum(estimate_tokens_of(message["content"]) for message in messages)
    return Reply(text, asked, estimate_tokens_of(text), estimated=True)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40


def content_text(content: object) -> str:
    """The text of a message's content, given as text or in parts; thoughts are not the answer."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part if isinstance(part, str) else _part_text(part) for part in content]
    return "".join(parts)


def _part_text(part: object) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else ""
