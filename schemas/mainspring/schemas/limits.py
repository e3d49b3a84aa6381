"""How large and how long anything may be, and the checks that say so.

The client checks before it produces and the scheduler before it accepts, with these same functions, so that nothing
accepted can fail later at a producer, in a topic name or in a table. Every function returns None for a value within
bounds, or the first `Problem`.
"""

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from mainspring.schemas.codes import RejectCode
from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob
from mainspring.schemas.job import JobSpec

__all__ = [
    "ACTOR_MAX_CHARS",
    "CONTENT_TYPE_MAX_CHARS",
    "DELAY_MAX_MS",
    "ERROR_MESSAGE_MAX_CHARS",
    "ERROR_TYPE_MAX_CHARS",
    "EVIDENCE_MAX_BYTES",
    "ID_MAX_CHARS",
    "INSTANT_MAX_MS",
    "LOG_MAX_BYTES",
    "MESSAGE_MAX_CHARS",
    "NAME_MAX_CHARS",
    "NOTE_MAX_CHARS",
    "PAYLOAD_MAX_BYTES",
    "PREFIX_MAX_CHARS",
    "QUEUE_MAX_CHARS",
    "REASON_MAX_CHARS",
    "RECORD_MAX_BYTES",
    "RESULT_MAX_BYTES",
    "RETRIES_MAX",
    "RETRY_DELAY_MAX_MS",
    "TAGS_MAX",
    "TAG_MAX_CHARS",
    "TENANT_MAX_CHARS",
    "TIMEOUT_MAX_MS",
    "TRACEBACK_MAX_CHARS",
    "Problem",
    "check_command",
    "check_delay_ms",
    "check_id",
    "check_instant_ms",
    "check_name",
    "check_payload",
    "check_progress",
    "check_queue",
    "check_result",
    "check_spec",
    "check_tags",
    "check_text",
    "check_timeout_ms",
    "clip",
    "clip_bytes",
]

_DAY_MS = 86_400_000

ID_MAX_CHARS = 255
"""Ids are record keys, table keys and parts of URLs: long enough for a path or a digest, short enough for a line."""

NAME_MAX_CHARS = 255
"""Names of handlers: a dotted path at most."""

QUEUE_MAX_CHARS = 128
"""A queue is part of a topic name, of which Kafka takes 249 characters: prefix, `work.`, queue and `.critical`."""

PREFIX_MAX_CHARS = 100
"""What then is left for the prefix of the topics, with room to spare."""

TENANT_MAX_CHARS = 255
"""Tenants are keys of weights and limits, as ids are."""

TAGS_MAX = 32
"""Tags are copied into the view, one row each."""

TAG_MAX_CHARS = 128
"""A tag is a label, not a document."""

CONTENT_TYPE_MAX_CHARS = 255
"""RFC 6838 allows 127 characters on each side of the slash."""

ACTOR_MAX_CHARS = 255
"""Who asked: a user name, a principal or an address."""

REASON_MAX_CHARS = 1024
"""Why a user asked; it is copied into the event."""

PAYLOAD_MAX_BYTES = 512 * 1024
"""A payload is carried by three records; half of Kafka's default record size leaves room for all else. Larger data
belongs into an object store, and its address into the payload."""

RESULT_MAX_BYTES = 256 * 1024
"""A result is carried by a report and an event and kept in the view."""

RECORD_MAX_BYTES = 1024 * 1024
"""The largest record of `commands`, Kafka's own default. Internal topics take twice this, so that whatever was accepted
also fits into the records made from it."""

INSTANT_MAX_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, where Python's datetimes end. Epoch milliseconds UTC."""

DELAY_MAX_MS = 3653 * _DAY_MS
"""Ten years; further ahead an instant says better what is meant."""

TIMEOUT_MAX_MS = 366 * _DAY_MS
"""A year; longer than any attempt lives between two deployments."""

RETRIES_MAX = 1_000_000
"""Attempts are numbered in 32 bits; this leaves room and is still no limit to anybody."""

RETRY_DELAY_MAX_MS = 366 * _DAY_MS
"""A year between two attempts."""

ERROR_TYPE_MAX_CHARS = 255
"""Name of an exception class."""

ERROR_MESSAGE_MAX_CHARS = 4096
"""An error goes into the events and the view: its message is cut to this..."""

TRACEBACK_MAX_CHARS = 16_384
"""...and its traceback, in the middle, to this."""

MESSAGE_MAX_CHARS = 1024
"""Text of a refusal: it may quote what the user sent."""

NOTE_MAX_CHARS = 255
"""Progress notes travel with every heartbeat."""

EVIDENCE_MAX_BYTES = 16 * 1024
"""A refused report is kept, but a flood of late results shall not fill the log that is kept for ever."""

LOG_MAX_BYTES = 64 * 1024
"""Captured output of one attempt."""

_QUEUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a value is refused: the code of the refusal, the field, and a sentence that says what would be right."""

    code: RejectCode
    field: str
    message: str


def _invalid(field: str, message: str) -> Problem:
    return Problem(code=RejectCode.INVALID_FIELD, field=field, message=f"{field} {message}")


def check_text(text: object, field: str, max_chars: int, *, empty: bool = False) -> Problem | None:
    """Checks a line of text: a string of printable characters, at most `max_chars` of them.

    Printable are Unicode's letters, marks, digits, signs and the plain space: no control character, no NUL, no line
    break, no lone surrogate.
    Nothing is normalised: text in NFC and in NFD are two different texts.
    """
    if not isinstance(text, str):
        return _invalid(field, f"must be a string, not {type(text).__name__}")
    if not text:
        return None if empty else _invalid(field, f"must have 1 to {max_chars} characters, and is empty")
    if len(text) > max_chars:
        return _invalid(field, f"must have at most {max_chars} characters, and has {len(text)}")
    if text.isprintable():
        return None
    index = next(index for index, char in enumerate(text) if not char.isprintable())
    what = "lone surrogate" if unicodedata.category(text[index]) == "Cs" else "character that is not printable"
    return _invalid(field, f"has a {what} (U+{ord(text[index]):04X}) at index {index}")


def check_id(text: object, field: str = "job_id", *, derived: bool = False) -> Problem | None:
    """Checks an id: 1 to 255 printable characters. `@` is kept for the jobs that schedules fire (`derived`)."""
    problem = check_text(text, field, ID_MAX_CHARS)
    if problem is None and isinstance(text, str) and "@" in text and not derived:
        return _invalid(field, "must not contain '@', which is reserved for jobs fired by schedules")
    return problem


def check_name(text: object, field: str = "name") -> Problem | None:
    """Checks the name of a handler: 1 to 255 printable characters."""
    return check_text(text, field, NAME_MAX_CHARS)


def check_queue(text: object, field: str = "queue") -> Problem | None:
    """Checks the name of a queue: ASCII letters, digits, `-` and `_`, the latter two not at its ends.

    It is part of topic names. No dot: Kafka refuses a topic `a.b` beside `a_b`.
    """
    problem = check_text(text, field, QUEUE_MAX_CHARS)
    if problem is None and isinstance(text, str) and not _QUEUE.fullmatch(text):
        return _invalid(
            field, f"must be ASCII letters, digits, '-' and '_' with a letter or digit at both ends, not {text!r}"
        )
    return problem


def check_tags(tags: Iterable[object], field: str = "tags") -> Problem | None:
    """Checks tags: at most 32, all different, each 1 to 128 printable characters."""
    seen: set[object] = set()
    for index, tag in enumerate(tags):
        if index >= TAGS_MAX:
            return _invalid(field, f"must be at most {TAGS_MAX}")
        problem = check_text(tag, f"{field}[{index}]", TAG_MAX_CHARS)
        if problem is not None:
            return problem
        if tag in seen:
            return _invalid(f"{field}[{index}]", f"repeats the tag {tag!r}")
        seen.add(tag)
    return None


def _check_number(value: object, field: str, maximum: int, unit: str = " ms") -> Problem | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return _invalid(field, f"must be a whole number, not {value!r}")
    if not 0 <= value <= maximum:
        return _invalid(field, f"must be from 0 to {maximum}{unit}, and is {value}")
    return None


def check_instant_ms(value: object, field: str = "run_at_ms") -> Problem | None:
    """Checks an instant in epoch milliseconds UTC: from 1970 (the past means now) to the end of the year 9999."""
    return _check_number(value, field, INSTANT_MAX_MS)


def check_delay_ms(value: object, field: str = "delay_ms") -> Problem | None:
    """Checks a delay: 0 to ten years, in milliseconds."""
    return _check_number(value, field, DELAY_MAX_MS)


def check_timeout_ms(value: object, field: str = "timeout_ms") -> Problem | None:
    """Checks the time-out of an attempt: 1 ms (0 could only ever time out) to a year."""
    if value == 0 and not isinstance(value, bool):
        return _invalid(field, "must be at least 1 ms; leave it out for no time-out")
    return _check_number(value, field, TIMEOUT_MAX_MS)


def check_payload(payload: object, field: str = "payload") -> Problem | None:
    """Checks an encoded payload: at most 512 KiB."""
    if not isinstance(payload, bytes):
        return _invalid(field, f"must be bytes, not {type(payload).__name__}")
    if len(payload) > PAYLOAD_MAX_BYTES:
        size = f"{len(payload)} bytes, more than {PAYLOAD_MAX_BYTES}"
        message = f"{field} has {size}; put the data elsewhere and its address here"
        return Problem(code=RejectCode.PAYLOAD_TOO_LARGE, field=field, message=message)
    return None


def check_result(result: bytes | None, field: str = "result") -> Problem | None:
    """Checks an encoded result: at most 256 KiB."""
    if result is not None and len(result) > RESULT_MAX_BYTES:
        return _invalid(field, f"has {len(result)} bytes, more than {RESULT_MAX_BYTES}")
    return None


def check_progress(value: object, field: str = "progress") -> Problem | None:
    """Checks a progress: a finite number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        return _invalid(field, f"must be a number from 0 to 1, not {value!r}")
    return None


def check_spec(spec: JobSpec, *, derived: bool = False) -> Problem | None:
    """Checks a specification, cheapest first. `derived` allows the ids that schedules make.

    Fields of what is not built yet are refused with NOT_SUPPORTED rather than ignored.
    """
    return (
        check_id(spec.job_id, derived=derived)
        or check_name(spec.name)
        or check_queue(spec.queue)
        or check_text(spec.tenant, "tenant", TENANT_MAX_CHARS, empty=True)
        or check_text(spec.content_type, "content_type", CONTENT_TYPE_MAX_CHARS)
        or check_payload(spec.payload)
        or (check_tags(spec.tags) if spec.tags else None)
        or _check_times(spec)
        or _check_retry(spec)
        or (None if spec.retry_of is None else check_id(spec.retry_of, "retry_of", derived=True))
        or _check_supported(spec)
    )


def _check_times(spec: JobSpec) -> Problem | None:
    if spec.run_at_ms is not None and spec.delay_ms is not None:
        return _invalid("delay_ms", "and run_at_ms exclude each other: give one of them")
    return (
        (None if spec.run_at_ms is None else check_instant_ms(spec.run_at_ms))
        or (None if spec.delay_ms is None else check_delay_ms(spec.delay_ms))
        or (None if spec.timeout_ms is None else check_timeout_ms(spec.timeout_ms))
        or (None if spec.deadline_ms is None else check_instant_ms(spec.deadline_ms, "deadline_ms"))
        or (None if spec.start_deadline_ms is None else check_instant_ms(spec.start_deadline_ms, "start_deadline_ms"))
    )


def _check_retry(spec: JobSpec) -> Problem | None:
    return (
        _check_number(spec.max_retries, "max_retries", RETRIES_MAX, "")
        or _check_number(spec.retry_base_delay_ms, "retry_base_delay_ms", RETRY_DELAY_MAX_MS)
        or _check_number(spec.retry_max_delay_ms, "retry_max_delay_ms", RETRY_DELAY_MAX_MS)
        or _check_number(spec.max_lost, "max_lost", RETRIES_MAX, "")
    )


def _check_supported(spec: JobSpec) -> Problem | None:
    for field, is_set in (("depends_on", bool(spec.depends_on)), ("schedule_id", spec.schedule_id is not None)):
        if is_set:
            message = f"{field} is not supported by this version; leave it out"
            return Problem(code=RejectCode.NOT_SUPPORTED, field=field, message=message)
    return None


def check_command(command: SubmitJob | CancelJob | RescheduleJob | RetryJob) -> Problem | None:
    """Checks a command with all that it carries."""
    problem = (
        check_text(command.command_id, "command_id", ID_MAX_CHARS)
        or check_text(command.actor, "actor", ACTOR_MAX_CHARS)
        or check_text(command.reason, "reason", REASON_MAX_CHARS, empty=True)
        or check_instant_ms(command.requested_at_ms, "requested_at_ms")
    )
    if problem is not None:
        return problem
    if isinstance(command, SubmitJob):
        return check_spec(command.spec)
    problem = check_id(command.job_id, derived=True)
    if problem is None and isinstance(command, RescheduleJob):
        problem = check_instant_ms(command.run_at_ms)
    if problem is None and isinstance(command, RetryJob):
        problem = check_id(command.new_job_id, "new_job_id")
    return problem


def clip(text: str, max_chars: int) -> str:
    """Text that fits: cut in the middle, with a note of how much is missing, and lone surrogates replaced."""
    if len(text) > max_chars:
        note = f"\n… {len(text)} characters, cut to {max_chars} …\n"
        if max_chars <= len(note):
            text = text[:max_chars]
        else:
            head = (max_chars - len(note) + 1) // 2
            text = text[:head] + note + text[len(text) - (max_chars - len(note) - head) :]
    return text.encode("utf-8", "replace").decode("utf-8")


def clip_bytes(data: bytes, max_bytes: int) -> bytes:
    """The first `max_bytes` of `data`."""
    return data if len(data) <= max_bytes else data[:max_bytes]
