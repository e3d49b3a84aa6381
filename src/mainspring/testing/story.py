"""The history of a job in words, for people who look at a failed test."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any, Final

from mainspring.client.progress import Progress
from mainspring.processors.core.explain import WhyNot
from mainspring.schemas import JobEvent
from mainspring.schemas.common import AttemptError
from mainspring.schemas.events import (
    CommandRejected,
    JobCancelled,
    JobCancelRequested,
    JobCompleted,
    JobFailed,
    JobRescheduled,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobTimedOut,
    ReportRefused,
)
from mainspring.schemas.logs import LogCaptured

__all__ = ["story"]

_RESULT_SHOWN: Final = 200
_LINES_SHOWN: Final = 20
_SECOND_MS: Final = 1_000
_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000
_QUIET: Final = frozenset({"job_id", "schedule_id", "revision", "decided_at_ms", "cause", "txn"})
_EMPTY: Final[tuple[object, ...]] = (None, "", ())


def story(
    job_id: str,
    *,
    progress: Progress,
    events: Sequence[JobEvent],
    logs: Iterable[LogCaptured],
    start_ms: int,
    why: WhyNot | None,
) -> str:
    """All that happened to a job: a head, a line per event with the time since the start, and what it printed."""
    if not events:
        return f"job {job_id!r}: nothing has been decided about it"
    spec = progress.spec
    status = "not submitted" if progress.status is None else progress.status.name
    head = f"job {job_id!r}: {status}"
    if spec is not None:
        head += f" ({spec.name}, queue {spec.queue}, {spec.priority.name})"
    width = max(len(type(event).__name__) for event in events)
    lines = [head]
    for event in events:
        at = _elapsed(event.decided_at_ms - start_ms)
        lines.append(f"  {at:>12}  {type(event).__name__:<{width}}  {_describe(event)}".rstrip())
    for log in logs:
        lines += [f"  output of attempt {log.attempt}:", *(f"    | {line}" for line in _shown(log.text))]
    if why is not None and progress.terminal is None:
        lines.append(f"  now: {why}")
    return "\n".join(lines)


def _elapsed(ms: int) -> str:
    """Time since the start, exact to the millisecond: `+0s`, `+250ms`, `+1.5s`, `+2:00:00.5`, `+1d 0:00:00`."""
    return f"+{_span(ms)}"


def _describe(event: JobEvent) -> str:
    say = _WORDS.get(type(event))
    if say is not None:
        return say(event)
    told = {field.name: getattr(event, field.name) for field in fields(event) if field.name not in _QUIET}
    return " ".join(f"{name}={value!r}" for name, value in told.items() if value not in _EMPTY)


def _span(ms: int) -> str:
    if 0 < ms < _SECOND_MS:
        return f"{ms}ms"
    if ms < _MINUTE_MS:
        return f"{ms / _SECOND_MS:g}s"
    days, rest = divmod(ms, _DAY_MS)
    clock = str(timedelta(milliseconds=rest))
    clock = clock.rstrip("0") if rest % _SECOND_MS else clock
    return f"{days}d {clock}" if days else clock


def _later(event: JobSubmitted) -> str:
    later_ms = event.due_at_ms - event.decided_at_ms
    return f", due in {_span(later_ms)}" if later_ms > 0 else ""


def _in(ms: int) -> str:
    return f"in {_span(ms)}" if ms > 0 else "at once"


def _result(data: bytes | None) -> str:
    if data is None:
        return ""
    text = data.decode("utf-8", "backslashreplace")
    return f" → {text[:_RESULT_SHOWN]}{'…' if len(text) > _RESULT_SHOWN else ''}"


def _error(error: AttemptError | None) -> str:
    return "" if error is None else f": {error.type}: {error.message.partition(chr(10))[0]}"


def _words(reason: str) -> str:
    return f": {reason}" if reason else ""


def _shown(text: str) -> list[str]:
    lines = text.splitlines()
    if len(lines) <= _LINES_SHOWN:
        return lines
    return [f"… {len(lines) - _LINES_SHOWN} lines before …", *lines[-_LINES_SHOWN:]]


_WORDS: Final[Mapping[type[Any], Callable[[Any], str]]] = {
    JobSubmitted: lambda e: f"by {e.actor}" + _later(e),
    JobStarted: lambda e: f"attempt {e.attempt} on {e.worker_id}",
    JobCompleted: lambda e: f"attempt {e.attempt}{_result(e.result)}",
    JobRetryScheduled: lambda e: f"attempt {e.attempt} {e.reason}{_error(e.error)}; again {_in(e.delay_ms)}",
    JobFailed: lambda e: f"attempt {e.attempt} {e.reason}{_error(e.error)}",
    JobTimedOut: lambda e: f"attempt {e.attempt} ran longer than {e.timeout_ms} ms",
    JobCancelRequested: lambda e: f"by {e.actor}: attempt {e.attempt} is told to stop{_words(e.reason)}",
    JobCancelled: lambda e: e.cancel_code + (f" by {e.actor}" if e.actor else "") + _words(e.reason),
    JobRescheduled: lambda e: f"by {e.actor or 'the clock'}, due {_in(e.due_at_ms - e.decided_at_ms)}",
    ReportRefused: lambda e: f"{e.report} of attempt {e.attempt} from {e.worker_id}: {e.refusal}",
    CommandRejected: lambda e: f"{e.command} by {e.actor}: {e.reject_code}, {e.message}",
}
"""What an event says beyond its kind; of any other kind all fields are shown."""
