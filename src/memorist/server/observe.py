"""What a server tells its operator: its log, as text or JSON, and the time of each request."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from traceback import format_tb
from typing import TYPE_CHECKING, Any

from memorist import metrics
from memorist.config import Settings

if TYPE_CHECKING:  # the worker process does without
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
access = logging.getLogger("memorist.access")


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and what `extra={"fields": …}` adds."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line; of an exception its type alone, as its text may quote a user."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """A line of text; of an exception where it was raised and its type, as above."""

    def formatException(self, ei: Any) -> str:
        """The traceback without the exception's text."""
        return "".join([*format_tb(ei[2]), ei[0].__name__])


def set_up_logging(settings: Settings) -> None:
    """Log to standard error as the settings say; an application's own handlers stay.

    Other packages are never at `debug`: there they log what is sent and answered.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines(TEXT))
    level = settings.log_level.upper()
    if level == "DEBUG":
        logging.getLogger("memorist").setLevel(level)
        level = "INFO"
    logging.basicConfig(level=level, handlers=[handler])
    if settings.access_log == "on":
        access.setLevel(logging.INFO)


class ObserveRequests:
    """Times each request, and logs it where that is wanted: by its route, never by its path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._active = 0
        metrics.watch("memorist.http.active", self.read_active)
        metrics.watch("memorist.process.cpu", self.read_cpu)
        metrics.watch("memorist.process.memory", self.read_memory)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note how it ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 0, time.perf_counter()

        async def send_noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        self._active += 1
        try:
            await self._app(scope, receive, send_noting)
        finally:
            self._active -= 1
            self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        area = area_of(scope)
        result = f"{status // 100}xx" if status else "closed"
        metrics.record("memorist.http.duration", seconds, area=area, result=result)
        if access.isEnabledFor(logging.INFO):
            fields: dict[str, Any] = {
                "method": scope["method"],
                "route": getattr(scope.get("route"), "path", f"/{area}"),
                "status": status,
                "ms": round(seconds * 1_000, 1),
                "request_id": scope.get("state", {}).get("request_id", ""),
            }
            access.info(" ".join(map(str, fields.values())), extra={"fields": fields})

    def read_active(self) -> Mapping[str, float]:
        """How many requests are being answered."""
        return {"": self._active}

    def read_cpu(self) -> Mapping[str, float]:
        """The processor time of this process, in seconds."""
        return {"": time.process_time()}

    def read_memory(self) -> Mapping[str, float]:
        """The resident memory of this process in bytes, where the system has /proc."""
        with suppress(OSError):
            return {
                "": int(Path("/proc/self/statm").read_text("ascii").split()[1])
                * os.sysconf("SC_PAGE_SIZE")
            }
        return {}


def area_of(scope: Scope) -> str:
    """What a request is about, as the metrics list it: its path's first part below /api."""
    path = scope["path"].removeprefix(scope.get("root_path", "")).removeprefix("/api")
    area = path.split("/")[1] if "/" in path else ""
    area = "page" if area in ("", "web", "docs") else area
    return area if area in metrics.AREAS else metrics.OTHER
