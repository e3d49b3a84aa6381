"""Options that several commands have."""

import sys
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from mainspring.cli.durations import parse_duration

__all__ = [
    "Duration",
    "Instant",
    "JobId",
    "OrderName",
    "PriorityName",
    "Reason",
    "StatusName",
    "duration",
    "instant",
    "priority_name",
    "read_payload",
    "status_name",
]


def duration(text: str) -> timedelta:
    """A duration as an option's value."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def instant(text: str) -> datetime:
    """An instant as an option's value: ISO 8601; without a zone it is the local one."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time: write it like 2030-01-31T09:00:00Z, 2030-01-31T09:00+02:00 or 2030-01-31 09:00"
        ) from None
    return parsed.astimezone(UTC)


def read_payload(text: str | None) -> Any:
    """The JSON of `--payload`: as it stands, `@file`, or `-` for stdin. A usage error says what is wrong with it."""
    if text is None:
        return None
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
Duration = timedelta | None
Instant = datetime | None


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


def priority_name(text: str) -> PriorityName:
    """A priority as an option's value, in any case."""
    return _named(PriorityName, text)


def status_name(text: str) -> StatusName:
    """A state as an option's value, in any case."""
    return _named(StatusName, text)


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
