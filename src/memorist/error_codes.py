"""Codes: each error's name and status on the wire, for the server that tells and who reads it."""

from __future__ import annotations

from memorist import errors
from memorist.errors import MemoristError

# The first that fits is told: those further down the tree of errors come before their parents.
CODES: tuple[tuple[type[MemoristError], int, str], ...] = (
    (errors.TooLargeError, 413, "too_large"),
    (errors.ImageError, 422, "image"),
    (errors.MessageError, 422, "message"),
    (errors.ScopeError, 422, "scope"),
    (errors.WindowError, 422, "window"),
    (errors.RecordError, 422, "record"),
    (errors.InvalidError, 422, "invalid"),
    (errors.NotFoundError, 404, "not_found"),
    (errors.ConflictError, 409, "conflict"),
    (errors.StoreBusyError, 503, "store_busy"),
    (errors.StoreFullError, 507, "store_full"),
    (errors.StoreUnavailableError, 503, "store_unavailable"),
    (errors.StoreError, 500, "store"),
    (errors.ProviderError, 502, "provider"),
    (errors.UnauthorizedError, 401, "unauthorized"),
    (errors.ForbiddenError, 403, "forbidden"),
    (errors.RateLimitedError, 429, "rate_limited"),
    (errors.MissingExtraError, 501, "missing_extra"),
    (errors.ConfigError, 500, "config"),
)
INTERNAL = (500, "internal")


def code_of(error: Exception) -> tuple[int, str]:
    """The status and code of an error; one that is not ours is only told to be there."""
    for kind, status, code in CODES:
        if isinstance(error, kind):
            return status, code
    return INTERNAL


def error_of(code: str) -> type[MemoristError]:
    """The error that a code stands for."""
    return next((kind for kind, _, known in CODES if known == code), MemoristError)
