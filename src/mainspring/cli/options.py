"""Options that several commands have."""

import sys
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from mainspring.cli.durations import parse_duration

__all__ = [
    "AppOption",
    "Delay",
    "Duration",
    "Instant",
    "JobId",
    "OrderName",
    "PriorityName",
    "Reason",
    "RunAt",
    "StatusName",
    "WaitTimeout",
    "arguments_of",
    "duration_option",
    "in_utc",
    "instant_option",
    "priority_option",
    "status_name",
]


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _instant(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time: write it like 2030-01-31T09:00:00Z, 2030-01-31T09:00+02:00 or 2030-01-31 09:00"
        ) from None
    return in_utc(parsed, text)


def in_utc(parsed: datetime, text: str) -> datetime:
    """The instant in UTC. A usage error for one that UTC has no year for; `text`: how it was written."""
    try:
        return parsed.astimezone(UTC)
    except (OverflowError, ValueError):
        raise typer.BadParameter(f"{text!r} is before the year 1 or after the year 9999 in UTC") from None


def duration_option(name: str, help_: str) -> Any:
    """An option that takes a duration."""
    return typer.Option(name, parser=_duration, help=help_, metavar="DURATION")


def instant_option(name: str, help_: str) -> Any:
    """An option that takes an instant: ISO 8601; without a zone it is the local one."""
    return typer.Option(name, parser=_instant, help=help_, metavar="TIME")


def arguments_of(payload: str | None) -> dict[str, Any] | None:
    """The arguments of `--payload`, a JSON object: as it stands, `@file`, or `-` for stdin; None where none are given.

    A usage error says what is wrong with it.
    """
    arguments = None if payload is None else _read_json(payload)
    if arguments is None or isinstance(arguments, dict):
        return arguments
    raise typer.BadParameter('must be a JSON object of arguments by name, like {"x": 1}', param_hint="--payload")


def _read_json(text: str) -> Any:
    import json

    source = text
    if text == "-":
        source = sys.stdin.read()
    elif text.startswith("@"):
        try:
            source = Path(text[1:]).read_text(encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"{text[1:]} cannot be read: {error.strerror}", param_hint="--payload") from None
    try:
        return json.loads(source)
    except ValueError as error:
        raise typer.BadParameter(
            f"is not JSON: {error}. Quote it for the shell: --payload '{{\"x\": 1}}'", param_hint="--payload"
        ) from None


Name = TypeVar("Name", bound=StrEnum)
JobId = Annotated[
    str, typer.Argument(help="Id of the job, or enough of its beginning.", metavar="JOB_ID", show_default=False)
]
Reason = Annotated[str, typer.Option(help="Why, kept with the event.", metavar="TEXT")]
AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        help="Where the job is registered: the options that it declares hold, and its payload is checked first. "
        "By default worker.app.",
        metavar="MODULE:APP",
    ),
]
Duration = timedelta | None
Instant = datetime | None
Delay = Annotated[Duration, duration_option("--delay", "Run it after this time: 10s, 5m, 2h.")]
RunAt = Annotated[Instant, instant_option("--at", "Run it at this time (ISO 8601; local without a zone).")]
WaitTimeout = Annotated[Duration, duration_option("--wait-timeout", "Give up waiting after this time.")]


class StatusName(StrEnum):
    """The states of a job, by name: importing the language for them would slow `--help` down."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    RETRY_WAIT = "RETRY_WAIT"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"


class PriorityName(StrEnum):
    """The priorities, by name."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


def _priority_name(text: str) -> PriorityName:
    return _named(PriorityName, text)


def status_name(text: str) -> StatusName:
    """A state as an option's value, in any case."""
    return _named(StatusName, text)


def priority_option(help_: str) -> Any:
    """An option that takes a priority, in any case."""
    return typer.Option("--priority", parser=_priority_name, help=help_, metavar="PRIORITY")


def _named(kind: type[Name], text: str) -> Name:
    try:
        return kind(text.upper())
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(kind)}") from None


class OrderName(StrEnum):
    """The orders of a list."""

    NEWEST = "newest"
    OLDEST = "oldest"
    DUE = "due"
    FINISHED = "finished"


class FormatName(StrEnum):
    """The forms of an export."""

    JSONL = "jsonl"
    AVRO = "avro"
    CSV = "csv"
