"""Schedules as JSON of a stable shape, as pages, and as rows of tables."""

from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from mainspring.cli.durations import format_duration
from mainspring.cli.output import escape, print_pairs, stdout
from mainspring.cli.show import ago, iso, local, payload_json, payload_text

if TYPE_CHECKING:
    from rich.text import Text

    from mainspring.client.schedules import Change, ScheduleInfo
    from mainspring.schemas.job import JobSpec

__all__ = [
    "change_json",
    "change_row",
    "definition_json",
    "instant_json",
    "instant_local",
    "next_text",
    "print_schedule",
    "schedule_json",
    "schedule_status_text",
]

_STYLES = {"ACTIVE": "green", "PAUSED": "yellow", "COMPLETED": "bright_black"}
_NEXT = 5
_TIMES = frozenset({"start_ms", "end_ms", "anchor_ms"})


def ms_of(at: datetime) -> int:
    """Epoch milliseconds of an aware datetime."""
    return round(at.timestamp() * 1000)


def instant_json(at: datetime | None) -> str | None:
    """An instant for programs."""
    return None if at is None else iso(ms_of(at))


def instant_local(at: datetime | None) -> str:
    """An instant for people."""
    return local(None if at is None else ms_of(at))


def schedule_status_text(status: str) -> "Text":
    """A state in its colour."""
    from rich.text import Text

    return Text(status, style=_STYLES.get(status, ""))


def next_text(info: "ScheduleInfo") -> str:
    """When it fires next, in a few words."""
    if info.next_run is None:
        return f"{info.status.name}, fires nothing" if info.status.name == "PAUSED" else "it never fires again"
    return f"next {instant_local(info.next_run)} ({ago(ms_of(info.next_run))})"


def schedule_json(info: "ScheduleInfo") -> dict[str, Any]:
    """One schedule with its definition."""
    return {
        "schedule_id": info.schedule_id,
        "status": info.status.name,
        "version": info.version,
        "revision": info.revision,
        "when": info.in_words(),
        "next_run": instant_json(info.next_run),
        "created_at": instant_json(info.created_at),
        "updated_at": instant_json(info.updated_at),
        "runs": info.runs,
        "fired": info.fired,
        "skipped": info.skipped,
        "failed": info.failed,
        "running": list(info.running),
        "backfills": list(info.backfills),
        "last_run": instant_json(info.last_run),
        "last_job_id": info.last_job_id,
        "last_outcome": info.last_outcome,
        "pause_code": info.pause_code,
        "paused_by": info.paused_by,
        "pause_note": info.pause_note,
        "definition": definition_json(info.definition),
    }


def definition_json(value: Any) -> Any:
    """A definition, or a part of one: enums by name, instants as ISO 8601, durations in milliseconds."""
    if is_dataclass(value):
        shown = {each.name: _field_json(each.name, getattr(value, each.name), value) for each in fields(value)}
        return {name.removesuffix("_ms") + "_at" if name in _TIMES else name: each for name, each in shown.items()}
    if isinstance(value, tuple):
        return [definition_json(each) for each in value]
    return value.name if isinstance(value, Enum) else value


def _field_json(name: str, value: Any, owner: Any) -> Any:
    if name in _TIMES:
        return iso(value)
    if isinstance(value, bytes):
        return payload_json(value, getattr(owner, "content_type", None))
    return definition_json(value)


def change_json(change: "Change") -> dict[str, Any]:
    """One field of a definition that changes."""
    return {
        "field": change.field,
        "before": _plain(change.field, change.before),
        "after": _plain(change.field, change.after),
    }


def change_row(change: "Change") -> list[str]:
    """The same for people."""
    return [change.field, *(_text(change.field, value) for value in (change.before, change.after))]


def _plain(field: str, value: Any) -> Any:
    name = field.rpartition(".")[2]
    if name in _TIMES:
        return iso(value)
    if isinstance(value, bytes):
        return payload_json(value, "application/json")
    return definition_json(value)


def _text(field: str, value: Any) -> str:
    name = field.rpartition(".")[2]
    if value is None or value in ((), ""):
        return "-"
    if name in _TIMES:
        return local(value)
    if name.endswith("_ms"):
        return format_duration(value / 1000)
    if isinstance(value, bytes):
        return payload_text(value, "application/json")
    if isinstance(value, tuple):
        return ", ".join(_rule(each) for each in value)
    return value.name if isinstance(value, Enum) else str(value)


def _rule(value: Any) -> str:
    expression, every_ms = getattr(value, "expression", None), getattr(value, "every_ms", None)
    if every_ms is not None:
        return f"every {format_duration(every_ms / 1000)}"
    return str(expression if expression is not None else getattr(value, "name", value))


def print_schedule(info: "ScheduleInfo") -> None:
    """The schedule's state, its definition, and when it fires next."""
    print_pairs(_state(info) | _terms(info))
    following = info.next_runs(_NEXT)
    if following:
        stdout().print("\n[bold]Next[/]")
        for at in following:
            stdout().print(f"{instant_local(at)}  [dim]{escape(instant_json(at))}[/]")


def _state(info: "ScheduleInfo") -> dict[str, Any]:
    by = f" by {info.paused_by}" if info.paused_by else ""
    words = f": {info.pause_note}" if info.pause_note else ""
    shown = {
        "schedule": info.schedule_id,
        "status": schedule_status_text(info.status.name),
        "paused": f"{info.pause_code}{by}{words}" if info.pause_code else None,
        "note": info.definition.note,
        "when": info.in_words(),
        "last run": f"{instant_local(info.last_run)} {info.last_job_id}" if info.last_run else None,
        "last end": info.last_outcome,
        "running": ", ".join(info.running),
        "backfills": ", ".join(info.backfills),
        "counts": f"{info.fired} fired, {info.skipped} skipped, {info.failed} failed",
        "version": f"{info.version}, since {instant_local(info.updated_at)}",
        "created": instant_local(info.created_at),
    }
    return {name: value for name, value in shown.items() if value not in (None, "")}


def _terms(info: "ScheduleInfo") -> dict[str, Any]:
    spec = info.definition
    job: JobSpec = spec.job
    window = format_duration(spec.catch_up_window_ms / 1000)
    shown = {
        "job": job.name,
        "payload": payload_text(job.payload, job.content_type),
        "queue": job.queue,
        "priority": job.priority.name,
        "tenant": job.tenant,
        "tags": ", ".join(job.tags),
        "retries": str(job.max_retries) if job.max_retries else None,
        "timeout": f"{job.timeout_ms / 1000:g} s" if job.timeout_ms is not None else None,
        "overlap": spec.overlap.name.lower()
        + (f", up to {spec.buffer_max}" if spec.overlap.name == "BUFFER_ALL" else ""),
        "catch-up": f"{spec.catch_up.name.lower()}, within {window}",
        "max runs": None if spec.max_runs is None else f"{spec.max_runs} ({info.runs} so far)",
        "on failure": "pause" if spec.pause_on_failure else None,
    }
    return {name: value for name, value in shown.items() if value not in (None, "")}
