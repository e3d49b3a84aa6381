"""Events, and whatever else stands in the log, as lines for people and as JSON for programs."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from mainspring.cli.job_page import event_summary
from mainspring.cli.output import printable
from mainspring.cli.show import iso, local, payload_json

if TYPE_CHECKING:
    from rich.text import Text

    from mainspring.log import LogRecord

__all__ = [
    "cause_text",
    "end_line",
    "event_line",
    "event_record",
    "plain",
    "record_json",
    "record_line",
    "record_style",
]

_STYLES = {
    "JobSubmitted": "cyan",
    "JobStarted": "bold blue",
    "JobCompleted": "green",
    "JobFailed": "bold red",
    "JobTimedOut": "magenta",
    "JobCancelled": "bright_black",
    "JobCancelRequested": "yellow",
    "JobRetryScheduled": "yellow",
    "JobRescheduled": "cyan",
    "ReportRefused": "red",
    "CommandRejected": "red",
}
_WIDTH = max(map(len, _STYLES))
# What the line or the document shows elsewhere.
_HEAD = frozenset({"job_id", "revision", "decided_at_ms", "cause"})


def record_style(kind: str) -> str:
    """The colour of a type of record."""
    return _STYLES.get(kind, "")


def plain(value: Any) -> Any:
    """A record's value in JSON types: enums by name, bytes as text where they are text, records as objects."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return payload_json(value, "application/json")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def event_record(event: Any, partition: int, offset: int) -> dict[str, Any]:
    """One event as JSON: its place, its cause, and its own fields in `data`."""
    return {
        "job_id": event.job_id,
        "revision": event.revision,
        "type": type(event).__name__,
        "decided_at": iso(event.decided_at_ms),
        "partition": partition,
        "offset": offset,
        "cause": plain(event.cause),
        "data": {name: value for name, value in plain(event).items() if name not in _HEAD},
    }


def event_line(event: Any, partition: int, offset: int, *, with_job: bool = False) -> "Text":
    """One event as a line: when, what, where, why, and what it says."""
    from rich.text import Text

    kind = type(event).__name__
    line = Text(f"{local(event.decided_at_ms, ms=True)}  ", style="dim")
    line.append(f"{kind:<{_WIDTH}}  ", style=record_style(kind))
    if with_job:
        line.append(f"{event.job_id}  ", style="bold")
    line.append(f"rev {event.revision:<3} {partition}:{offset:<8} ", style="dim")
    line.append(f"{cause_text(event.cause):<18} ", style="dim")
    shown = {name: value for name, value in plain(event).items() if name not in _HEAD}
    return line.append(_one_line(event_summary(shown, event.decided_at_ms)))


def end_line(event: Any) -> "Text":
    """The end of a job in few words: which, how, and what it says."""
    from rich.text import Text

    kind = type(event).__name__
    line = Text.assemble((f"{event.job_id}  ", "bold"), (f"{kind:<{len('JobCompleted')}}  ", record_style(kind)))
    shown = {name: value for name, value in plain(event).items() if name not in _HEAD}
    return line.append(_one_line(event_summary(shown, event.decided_at_ms)))


def cause_text(cause: Any) -> str:
    """The input that an event was decided on: topic, partition and offset, or the timer."""
    source = cause.source.name.lower()
    return f"by {source}" if cause.offset < 0 else f"by {source} {cause.partition}:{cause.offset}"


def record_json(record: "LogRecord") -> dict[str, Any]:
    """Any record of the log as JSON: its place, time, key and type, and its own fields."""
    return {
        "topic": record.place.topic,
        "partition": record.place.partition,
        "offset": record.place.offset,
        "at": iso(record.timestamp_ms) if record.timestamp_ms >= 0 else None,
        "key": None if record.key is None else record.key.decode("utf-8", "backslashreplace"),
        "type": record.type or None,
        "record": None if record.record is None else plain(record.record),
        "error": record.error,
    }


def record_line(record: "LogRecord", prefix: str) -> "Text":
    """Any record of the log as a line: when, where, what, whose, and what it says."""
    from rich.text import Text

    place = record.place
    line = Text(f"{local(record.timestamp_ms, ms=True) if record.timestamp_ms >= 0 else '-'}  ", style="dim")
    line.append(f"{place.topic.removeprefix(prefix)} {place.partition}:{place.offset}".ljust(20) + "  ", style="dim")
    kind = record.type or ("deleted" if record.value is None else "unreadable")
    line.append(f"{kind:<{_WIDTH}}  ", style=record_style(kind))
    key = "" if record.key is None else record.key.decode("utf-8", "backslashreplace")
    line.append(f"{_one_line(key)}  ", style="bold")
    if record.record is None:
        return line.append(_one_line(record.error or ""))
    cause = getattr(record.record, "cause", None)
    if cause is not None:
        line.append(f"{cause_text(cause)}  ", style="dim")
    shown = {name: value for name, value in plain(record.record).items() if name not in _HEAD}
    return line.append(_one_line(event_summary(shown, record.timestamp_ms)))


def _one_line(text: str) -> str:
    return printable(text.rstrip("\n").replace("\n", " ⏎ "))
