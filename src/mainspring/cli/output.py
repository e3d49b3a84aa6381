"""Data on stdout, everything else on stderr; tables for people, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from mainspring.cli.errors import CliError

__all__ = [
    "Column",
    "Output",
    "OutputOption",
    "escape",
    "note",
    "print_error",
    "print_json",
    "print_line",
    "print_pairs",
    "print_table",
    "printable",
    "progress",
    "stderr",
    "stdout",
    "table_of",
    "warn",
    "write",
]

# Wide enough that no cell is cut when the output is read by a program or a pager.
_PIPE_WIDTH = 10_000
_GAP = 2


class Output(StrEnum):
    """How data is printed."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("-o", "--output", help="How data is printed.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table: its head, and how its cells stand."""

    head: str
    right: bool = False
    style: str = ""
    fold: bool = False
    least: int | None = None
    """Characters that are enough of it where room is short; None: all of its widest cell."""
    drop: int = 0
    """On a narrow terminal the column with the highest number is left out first; one with 0 stays."""


@cache
def stdout() -> "Console":
    """Where data goes."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH, soft_wrap=False)


@cache
def stderr() -> "Console":
    """Where everything else goes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else _PIPE_WIDTH)


def print_json(data: object) -> None:
    """One JSON document on stdout, indented; nothing else is ever printed beside it."""
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    if sys.stdout.isatty():
        from rich.json import JSON

        stdout().print(JSON(text))
    else:
        sys.stdout.write(text + "\n")


def print_line(data: object) -> None:
    """One JSON document on one line, for streams."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def table_of(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> "Table":
    """An aligned table without lines; cells are texts, or whatever rich renders."""
    from rich.table import Table

    rows = list(rows)
    droppable = any(column.drop for column in columns)
    widths = _fitting(columns, rows, stdout().width) if droppable else dict.fromkeys(range(len(columns)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for at, width in widths.items():
        column = columns[at]
        table.add_column(
            column.head,
            justify="right" if column.right else "left",
            style=column.style,
            min_width=width,
            max_width=width,
            overflow="fold" if column.fold else "ellipsis",
            no_wrap=not column.fold,
        )
    for row in rows:
        table.add_row(*(_cell(row[at]) for at in widths))
    return table


def _fitting(columns: Sequence[Column], rows: Sequence[Sequence[Any]], width: int) -> dict[int, int]:
    """Places of the columns that the width has room for with their widths: what must be whole is never cut."""
    full = [
        max(len(column.head), *(0 if row[at] is None else len(str(row[at])) for row in rows), 0)
        for at, column in enumerate(columns)
    ]
    least = [
        each if column.least is None else max(len(column.head), min(column.least, each))
        for column, each in zip(columns, full, strict=True)
    ]
    empty = [not any(map(str, (row[at] for row in rows if row[at] is not None))) for at in range(len(columns))]
    kept = list(range(len(columns)))

    def left() -> int:
        return width + _GAP - sum(least[at] + _GAP for at in kept)

    # A column with nothing in it goes first, then by importance.
    for at in sorted(kept, key=lambda at: (empty[at], columns[at].drop), reverse=True):
        if left() < 0 and columns[at].drop:
            kept.remove(at)
    spare = max(0, left())
    widths = {}
    for at in kept:
        more = min(spare, full[at] - least[at])
        spare -= more
        widths[at] = least[at] + more
    return widths


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[Any]], *, empty: str = "") -> None:
    """An aligned table on stdout; `empty` goes to stderr when there are no rows."""
    table = table_of(columns, rows)
    if table.row_count:
        stdout().print(table)
    elif empty:
        note(empty)


def _cell(value: Any) -> Any:
    if hasattr(value, "__rich__") or hasattr(value, "plain"):
        return value
    from rich.text import Text

    return Text(printable("" if value is None else str(value)))


def print_pairs(pairs: Mapping[str, Any]) -> None:
    """Names and values below each other on stdout, names aligned."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs.items():
        grid.add_row(name, _cell(value))
    stdout().print(grid)


def escape(value: object) -> str:
    """Text that rich prints as it is: users' data must not be read as markup, nor move a terminal's cursor."""
    from rich.markup import escape as escape_markup

    return escape_markup(printable("" if value is None else str(value)))


def printable(text: str) -> str:
    """The text without control characters, which could move a terminal's cursor or fake its output."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def write(text: str) -> None:
    """Text on stdout, as it is."""
    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def progress(text: str) -> Iterator[None]:
    """A spinner on stderr while the body runs; nothing where no one sits at a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with stderr().status(text):
        yield


def note(text: str) -> None:
    """A remark on stderr (rich markup)."""
    stderr().print(text)


def warn(text: str) -> None:
    """A warning on stderr; `text` is printed as it is."""
    stderr().print(_labelled(("[bold yellow]warning[/]", text)))


def print_error(error: "CliError") -> None:
    """What, why, what next, on stderr."""
    lines = [("[bold red]error[/]", error.what), ("", error.why), ("[bold]next[/]", error.hint)]
    stderr().print(_labelled(*(line for line in lines if line[1])))


def _labelled(*lines: tuple[str, str]) -> "Table":
    """Texts behind labels; what wraps stays behind its label."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(label, escape(text))
    return grid
