"""Every error Memorist raises, as one tree.

    MemoristError
    ├── InvalidError (also ValueError)   the input is wrong; nothing was changed
    │   ├── MessageError                 … a message; the text names the field
    │   │   └── ImageError               … an image that cannot be read
    │   ├── ScopeError                   … a tenant, user, agent or session id
    │   ├── WindowError                  … a question that does not fit the window
    │   ├── RecordError                  … any other record
    │   └── TooLargeError                … more than is taken at once
    ├── NotFoundError (also LookupError) no such thing in this scope
    ├── ConflictError                    someone else was first; read again, then retry
    │   ├── LeaseLostError               a job's lease ran out and another worker has it
    ├── StoreError                       the database said no
    │   ├── StoreBusyError               locked for longer than the patience given
    │   ├── StoreFullError               no room left; nothing acknowledged was lost
    │   ├── StoreUnavailableError        the server cannot be reached
    │   ├── StoreDamagedError            not a database, or a damaged one
    │   ├── SchemaError                  made by a newer Memorist; left untouched
    │   └── DimensionError               vectors of another length than the index holds
    ├── ProviderError                    a model cannot be loaded or reached, or answers badly
    │   └── BadAnswerError               it answered, but not with what was asked for
    ├── UnauthorizedError                nobody known is asking
    ├── ForbiddenError                   known, but it is not theirs to ask for
    ├── RateLimitedError                 too many requests; wait, then retry
    ├── ConfigError                      a setting is wrong
    └── MissingExtraError (also ImportError)

Messages say what happened, with which value, and the cure. They never carry what
a user said: lengths, field names and types only.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

_kinds: dict[str, type[MemoristError]] = {}  # by their codes


class MemoristError(Exception):
    """The root of all errors raised on purpose by Memorist.

    `http` is the status and the code that a server answers with, if not those of the parent.
    """

    http = (500, "internal")

    def __init_subclass__(cls, http: tuple[int, str] | None = None) -> None:
        if http is not None:
            cls.http = http
            _kinds[http[1]] = cls


class InvalidError(MemoristError, ValueError, http=(422, "invalid")):
    """The input is wrong; nothing was changed."""


class MessageError(InvalidError, http=(422, "message")):
    """A message has the wrong shape; the text names the field."""


class ImageError(MessageError, http=(422, "image")):
    """An image is missing, too large, not an image, or not allowed to be read."""


class ScopeError(InvalidError, http=(422, "scope")):
    """A tenant, user, agent or session id cannot be used."""


class WindowError(InvalidError, http=(422, "window")):
    """The system prompt, the tools and the question alone are more than the window takes."""


class RecordError(InvalidError, http=(422, "record")):
    """A record other than a message has the wrong shape."""


class TooLargeError(InvalidError, http=(413, "too_large")):
    """It is more than is taken at once."""


class NotFoundError(MemoristError, LookupError, http=(404, "not_found")):
    """There is no such thing in this scope."""


class ConflictError(MemoristError, http=(409, "conflict")):
    """Someone else changed it first; read it again, then retry."""


class LeaseLostError(ConflictError):
    """The job's lease ran out and the job is no longer this worker's."""


class StoreError(MemoristError, http=(500, "store")):
    """The database refused."""


class StoreBusyError(StoreError, http=(503, "store_busy")):
    """The database stayed locked for longer than the patience given."""


class StoreFullError(StoreError, http=(507, "store_full")):
    """The disk or the quota is full."""


class StoreUnavailableError(StoreError, http=(503, "store_unavailable")):
    """The database cannot be reached."""


class StoreDamagedError(StoreError):
    """The file is damaged or is not a Memorist database."""


class SchemaError(StoreError, http=(503, "schema")):
    """The database was made by a newer Memorist; it was left untouched."""


class DimensionError(StoreError):
    """A vector's length differs from what its embedder gave before."""


class ProviderError(MemoristError, http=(502, "provider")):
    """A model cannot be loaded or reached, or its answer cannot be used.

    `status` is the HTTP status of a server that refused; `retry_after_s` the wait it asked for.
    """

    def __init__(
        self, message: str = "", *, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class BadAnswerError(ProviderError):
    """A model answered, but not with what was asked for; `tokens` is what that cost."""

    def __init__(self, message: str = "", *, tokens: int = 0) -> None:
        super().__init__(message)
        self.tokens = tokens


class UnauthorizedError(MemoristError, http=(401, "unauthorized")):
    """Nobody known is asking: there is no valid key or token."""


class ForbiddenError(MemoristError, http=(403, "forbidden")):
    """Who is asking is known, but may not ask for this."""


class RateLimitedError(MemoristError, http=(429, "rate_limited")):
    """Too many requests; `retry_after_s` says how long to wait."""

    def __init__(self, message: str = "", *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ConfigError(MemoristError, http=(500, "config")):
    """A setting has a value that cannot be used."""


class MissingExtraError(MemoristError, ImportError, http=(501, "missing_extra")):
    """An optional part is not installed."""

    def __init__(self, extra: str, distribution: str = "memorist") -> None:
        self.extra = extra
        super().__init__(f'this needs an optional part: pip install "{distribution}[{extra}]"')


@contextmanager
def needs_extra(extra: str, distribution: str = "memorist") -> Generator[None, None, None]:
    """Turn an ImportError in the block into a `MissingExtraError`, which names what to install."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(extra, distribution) from error


@contextmanager
def naming_setting(name: str) -> Generator[None, None, None]:
    """Say which setting an error in the block is about."""
    try:
        yield
    except MemoristError as error:
        raise ConfigError(f"{name}: {error}") from None


@contextmanager
def naming_item(place: int, count: int) -> Generator[None, None, None]:
    """Say which of several items an error in the block is about."""
    try:
        yield
    except (InvalidError, ConflictError) as error:
        raise type(error)(f"item {place}: {error}" if count > 1 else str(error)) from error


def code_of(error: Exception) -> tuple[int, str]:
    """The HTTP status and code of an error; any that is not ours is an internal one."""
    return error.http if isinstance(error, MemoristError) else MemoristError.http


def error_of(code: str) -> type[MemoristError]:
    """The error that a code stands for."""
    return _kinds.get(code, MemoristError)
