"""How commands print: tables for people, JSON for programs, remarks on standard error."""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from memorist.errors import InvalidError
from memorist.records.scope import Scope

SHORT_ID_CHARS = 8  # from the end of an id: UUIDv7s of the same time begin alike
WHOLE_ID_CHARS = 32
NARROW = 60  # columns of a terminal
INTERNAL_FIELDS = ("lease",)

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

console = Console()
errors = Console(stderr=True)

Cell = str | Text | datetime | int | None
Columns = Mapping[str, str | Callable[[Any], Cell]]
"""The columns of a table by name: an attribute of each record, or a function of it."""


def records(
    rows: Any, columns: Columns, *, as_json: bool, empty: str, main: str = "", header: bool = True
) -> None:
    """Print records as a table or as JSON; where there are none, say so on standard error."""
    if as_json:
        print_json(rows)
    elif rows:
        console.print(table(rows, columns, main=main, header=header))
    else:
        remark(empty)


def table(rows: Iterable[Any], columns: Columns, *, main: str = "", header: bool = True) -> Table:
    """Records as rows; with `main`, the other columns are dim."""
    readers = [attrgetter(cell) if isinstance(cell, str) else cell for cell in columns.values()]
    cells = [[read(row) for read in readers] for row in rows]
    if main and console.width < NARROW:
        return _stacked([[*map(_cell_text, row)] for row in cells], list(columns).index(main))
    made = Table(box=None, pad_edge=False, show_header=header)
    for number, name in enumerate(columns):
        counts = all(isinstance(row[number], int) for row in cells)
        made.add_column(
            name,
            style="dim" if main and name != main else "",
            overflow="fold",
            no_wrap=name == "id",
            justify="right" if counts else "left",
        )
    for row in cells:
        made.add_row(*map(_cell_text, row))
    return made


def _stacked(rows: list[list[Text]], main: int) -> Table:
    """The table for a narrow terminal: the other cells of a row stand below its main one."""
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(overflow="fold")
    for row in rows:
        others = Text(" · ").join(cell for cell in row if cell and cell is not row[main])
        others.stylize("dim")
        made.add_row(Text("\n").join((row[main], others)))
    return made


def _cell_text(cell: Cell) -> Text:
    if isinstance(cell, Text):
        return cell
    if isinstance(cell, datetime):
        return Text(timestamp(cell))
    return safe_text(f"{cell:,}" if isinstance(cell, int) else cell or "")


def safe_text(text: str, style: str = "") -> Text:
    """What a user wrote: it is never taken for markup, nor obeyed by the terminal."""
    return Text(escape_controls(text), style)


def escape_controls(text: str) -> str:
    """Text whose controls, also those of its direction, are shown and not obeyed by a terminal."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def print_json(value: Any) -> None:
    """Print for programs, in ASCII, which any terminal's encoding holds."""
    print(json.dumps(value, default=_jsonable))


def _jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else fields_of(value)


def fields_of(record: Any) -> dict[str, Any]:
    """A record's fields; user, agent and session in place of its scope, and no secret."""
    fields = {
        field.name: getattr(record, field.name)
        for field in dataclasses.fields(record)
        if field.repr and field.name not in INTERNAL_FIELDS
    }
    scope = fields.pop("scope", None)
    if isinstance(scope, Scope):
        fields |= {"user": scope.user, "agent": scope.agent, "session": scope.session}
    return fields


def remark(line: str, style: str = "dim") -> None:
    """A line on standard error, out of the way of the output."""
    errors.print(safe_text(line, style), soft_wrap=True)


def warn(line: str) -> None:
    """A yellow line on standard error."""
    remark(line, "yellow")


def warn_incomplete(late: Sequence[str], failed: Mapping[str, str]) -> None:
    """Name the search channels that were late or failed."""
    if late:
        warn(f"late: {', '.join(late)}")
    for channel, reason in failed.items():
        warn(f"{channel} gave nothing: {reason}")


def timestamp(at: datetime) -> str:
    """A moment in the reader's own time zone."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def day(at: datetime | None) -> str:
    """The day of a moment in the reader's own time zone, or nothing."""
    return at.astimezone().strftime("%Y-%m-%d") if at else ""


def counted(count: int, things: str) -> str:
    """So many things, named in the plural: "1 memory", "1,204 memories"."""
    one = f"{things[:-3]}y" if things.endswith("ies") else things.removesuffix("s")
    return f"{count:,} {one if count == 1 else things}"


def short_id(id_: str) -> str:
    """The end of an id, which tells it from others."""
    return f"…{id_[-SHORT_ID_CHARS:]}" if len(id_) > SHORT_ID_CHARS else id_


def record_id(record: Any) -> str:
    """The end of a record's id: a column."""
    return short_id(record.id)


def full_id(end: str, ids: Iterable[str]) -> str:
    """The one id with this end; where there is none, `end` itself, for the caller to look up.

    The ids are not read where `end` is a whole one.
    """
    shown = end.removeprefix("…")
    if not shown or len(end) >= WHOLE_ID_CHARS:
        return end
    matches = [id_ for id_ in ids if id_.endswith(shown)]
    if end in matches or not matches:
        return end
    if len(matches) > 1:
        raise InvalidError(f"{len(matches)} ids end so; give more of the one you mean")
    return matches[0]
