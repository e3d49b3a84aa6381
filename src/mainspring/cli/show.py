"""How times, states and bytes look to people and to programs."""

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mainspring.cli.durations import format_duration

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["ago", "iso", "local", "payload_json", "payload_text", "plural", "status_text", "until"]

STATUS_STYLES = {
    "CANCELLING": "yellow",
    "PENDING": "cyan",
    "RUNNING": "bold blue",
    "RETRY_WAIT": "yellow",
    "COMPLETED": "green",
    "FAILED": "bold red",
    "TIMED_OUT": "magenta",
    "CANCELLED": "bright_black",
}
PRIORITY_STYLES = {"CRITICAL": "bold red", "HIGH": "yellow", "MEDIUM": "", "LOW": "bright_black"}


def iso(at_ms: int | None) -> str | None:
    """A time for programs: ISO 8601 in UTC with milliseconds; None stays None."""
    if at_ms is None:
        return None
    seconds, ms = divmod(at_ms, 1000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{ms:03d}Z"


def local(at_ms: int | None, *, ms: bool = False) -> str:
    """A time for people: in the zone of this machine, which is named."""
    if at_ms is None:
        return "-"
    at = datetime.fromtimestamp(at_ms // 1000, UTC).astimezone()
    fraction = f".{at_ms % 1000:03d}" if ms else ""
    return f"{at:%Y-%m-%d %H:%M:%S}{fraction} {at:%Z}"


def ago(at_ms: int | None, now_ms: int | None = None) -> str:
    """How far a time is away: `3.2 s ago`, `in 4 m`."""
    if at_ms is None:
        return "-"
    seconds = (at_ms - (time.time_ns() // 1_000_000 if now_ms is None else now_ms)) / 1000
    return f"in {format_duration(seconds)}" if seconds > 0 else f"{format_duration(abs(seconds))} ago"


def until(start_ms: int | None, end_ms: int | None) -> str:
    """The time between two instants; `-` when one is not known."""
    return "-" if start_ms is None or end_ms is None else format_duration(max(0, end_ms - start_ms) / 1000)


def status_text(status: str) -> "Text":
    """A state in its colour."""
    from rich.text import Text

    return Text(status, style=STATUS_STYLES.get(status, ""))


def priority_text(priority: str) -> "Text":
    """A priority in its colour."""
    from rich.text import Text

    return Text(priority, style=PRIORITY_STYLES.get(priority, ""))


def payload_json(data: bytes | None, content_type: str | None) -> Any:
    """Bytes for programs: JSON as it is; UTF-8 as text; else base64 in an object that says so."""
    if data is None:
        return None
    if content_type == "application/json":
        try:
            return json.loads(data)
        except ValueError:
            pass
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"base64": b64encode(data).decode("ascii")}


def payload_text(data: bytes | None, content_type: str | None, limit: int = 400) -> str:
    """Bytes for people: compact JSON or text, cut at `limit` characters."""
    if data is None:
        return "-"
    value = payload_json(data, content_type)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(data)} bytes)"


def plural(count: int, noun: str) -> str:
    """So many of something whose plural takes an s: `1 job`, `2 jobs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
