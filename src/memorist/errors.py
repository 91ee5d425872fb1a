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

from collections.abc import Generator
from contextlib import contextmanager


class MemoristError(Exception):
    """The root of all errors raised on purpose by Memorist."""


class InvalidError(MemoristError, ValueError):
    """The input is wrong; nothing was changed."""


class MessageError(InvalidError):
    """A message has the wrong shape; the text names the field."""


class ImageError(MessageError):
    """An image is missing, too large, not an image, or not allowed to be read."""


class ScopeError(InvalidError):
    """A tenant, user, agent or session id cannot be used."""


class WindowError(InvalidError):
    """The system prompt, the tools and the question alone are more than the window takes."""


class RecordError(InvalidError):
    """A record other than a message has the wrong shape."""


class TooLargeError(InvalidError):
    """It is more than is taken at once."""


class NotFoundError(MemoristError, LookupError):
    """There is no such thing in this scope."""


class ConflictError(MemoristError):
    """Someone else changed it first; read it again, then retry."""


class LeaseLostError(ConflictError):
    """The job's lease ran out and the job is no longer this worker's."""


class StoreError(MemoristError):
    """The database refused."""


class StoreBusyError(StoreError):
    """The database stayed locked for longer than the patience given."""


class StoreFullError(StoreError):
    """The disk or the quota is full."""


class StoreUnavailableError(StoreError):
    """The database cannot be reached."""


class StoreDamagedError(StoreError):
    """The file is damaged or is not a Memorist database."""


class SchemaError(StoreError):
    """The database was made by a newer Memorist; it was left untouched."""


class DimensionError(StoreError):
    """A vector's length differs from what its embedder gave before."""


class ProviderError(MemoristError):
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


class UnauthorizedError(MemoristError):
    """Nobody known is asking: there is no valid key or token."""


class ForbiddenError(MemoristError):
    """Who is asking is known, but may not ask for this."""


class RateLimitedError(MemoristError):
    """Too many requests; `retry_after_s` says how long to wait."""

    def __init__(self, message: str = "", *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ConfigError(MemoristError):
    """A setting has a value that cannot be used."""


class MissingExtraError(MemoristError, ImportError):
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


# The first that fits is used, so an error stands before its parents.
CODES: tuple[tuple[type[MemoristError], int, str], ...] = (
    (TooLargeError, 413, "too_large"),
    (ImageError, 422, "image"),
    (MessageError, 422, "message"),
    (ScopeError, 422, "scope"),
    (WindowError, 422, "window"),
    (RecordError, 422, "record"),
    (InvalidError, 422, "invalid"),
    (NotFoundError, 404, "not_found"),
    (ConflictError, 409, "conflict"),
    (StoreBusyError, 503, "store_busy"),
    (StoreFullError, 507, "store_full"),
    (StoreUnavailableError, 503, "store_unavailable"),
    (SchemaError, 503, "schema"),
    (StoreError, 500, "store"),
    (ProviderError, 502, "provider"),
    (UnauthorizedError, 401, "unauthorized"),
    (ForbiddenError, 403, "forbidden"),
    (RateLimitedError, 429, "rate_limited"),
    (MissingExtraError, 501, "missing_extra"),
    (ConfigError, 500, "config"),
)
INTERNAL = (500, "internal")


def code_of(error: Exception) -> tuple[int, str]:
    """The HTTP status and code of an error; any that is not ours is an internal one."""
    for kind, status, code in CODES:
        if isinstance(error, kind):
            return status, code
    return INTERNAL


def error_of(code: str) -> type[MemoristError]:
    """The error that a code stands for."""
    return next((kind for kind, _, known in CODES if known == code), MemoristError)
