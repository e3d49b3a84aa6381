"""The checks of how large and how long anything may be, against `bounds`.

The client checks before it produces and the scheduler before it accepts, with these same functions, so that nothing
accepted can fail later at a producer, in a topic name or in a table. Every function returns None for a value within
bounds, or the first `Problem`.
"""

import math
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from mainspring.schemas.bounds import (
    ACTOR_MAX_CHARS,
    CONTENT_TYPE_MAX_CHARS,
    DELAY_MAX_MS,
    ID_MAX_CHARS,
    INSTANT_MAX_MS,
    NAME_MAX_CHARS,
    PAYLOAD_MAX_BYTES,
    QUEUE_MAX_CHARS,
    REASON_MAX_CHARS,
    RESULT_MAX_BYTES,
    RETRIES_MAX,
    RETRY_DELAY_MAX_MS,
    TAG_MAX_CHARS,
    TAGS_MAX,
    TENANT_MAX_CHARS,
    TIMEOUT_MAX_MS,
)
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.commands import CancelJob, RescheduleJob, RetryJob, SubmitJob
from mainspring.schemas.common import Priority
from mainspring.schemas.job import JobSpec

__all__ = [
    "Problem",
    "check_class",
    "check_command",
    "check_delay_ms",
    "check_id",
    "check_instant_ms",
    "check_name",
    "check_number",
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
    "invalid",
]

_QUEUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a value is refused: the code of the refusal, the field, and a sentence that says what would be right."""

    code: RejectCode
    field: str
    message: str


def invalid(field: str, message: str) -> Problem:
    """The problem of a field that cannot be meant like this; `message` goes on behind the name of the field."""
    return Problem(code=RejectCode.INVALID_FIELD, field=field, message=f"{field} {message}")


def check_text(text: object, field: str, max_chars: int, *, empty: bool = False) -> Problem | None:
    """Checks a line of text: a string of printable characters, at most `max_chars` of them.

    Printable are Unicode's letters, marks, digits, signs and the plain space: no control character, no NUL, no line
    break, no lone surrogate.
    Nothing is normalised: text in NFC and in NFD are two different texts.
    """
    if not isinstance(text, str):
        return invalid(field, f"must be a string, not {type(text).__name__}")
    if not text:
        return None if empty else invalid(field, f"must have 1 to {max_chars} characters, and is empty")
    if len(text) > max_chars:
        return invalid(field, f"must have at most {max_chars} characters, and has {len(text)}")
    if text.isprintable():
        return None
    index = next(index for index, char in enumerate(text) if not char.isprintable())
    what = "lone surrogate" if unicodedata.category(text[index]) == "Cs" else "character that is not printable"
    return invalid(field, f"has a {what} (U+{ord(text[index]):04X}) at index {index}")


def check_id(text: object, field: str = "job_id", *, derived: bool = False) -> Problem | None:
    """Checks an id: 1 to 255 printable characters. `@` is kept for the jobs that schedules fire (`derived`)."""
    problem = check_text(text, field, ID_MAX_CHARS)
    if problem is None and isinstance(text, str) and "@" in text and not derived:
        return invalid(field, "must not contain '@', which is reserved for jobs fired by schedules")
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
        return invalid(
            field, f"must be ASCII letters, digits, '-' and '_' with a letter or digit at both ends, not {text!r}"
        )
    return problem


def check_tags(tags: object, field: str = "tags") -> Problem | None:
    """Checks tags: a tuple of at most 32, all different, each 1 to 128 printable characters."""
    if type(tags) is not tuple:
        return invalid(field, f"must be a tuple, not {type(tags).__name__}")
    seen: set[object] = set()
    for index, tag in enumerate(tags):
        if index >= TAGS_MAX:
            return invalid(field, f"must be at most {TAGS_MAX}")
        problem = check_text(tag, f"{field}[{index}]", TAG_MAX_CHARS)
        if problem is not None:
            return problem
        if tag in seen:
            return invalid(f"{field}[{index}]", f"repeats the tag {tag!r}")
        seen.add(tag)
    return None


def check_class(value: object, field: str, kind: type[object]) -> Problem | None:
    """Checks that a value is of exactly this class: a bool is no number."""
    if type(value) is kind:
        return None
    return invalid(field, f"must be of type {kind.__name__}, not {type(value).__name__}")


def check_number(value: object, field: str, minimum: int, maximum: int, unit: str = "") -> Problem | None:
    """Checks a whole number; `unit` stands behind the bounds in the message."""
    if type(value) is not int:
        return invalid(field, f"must be a whole number, not {value!r}")
    if not minimum <= value <= maximum:
        return invalid(field, f"must be from {minimum} to {maximum}{unit}, and is {value}")
    return None


def check_instant_ms(value: object, field: str = "run_at_ms") -> Problem | None:
    """Checks an instant in epoch milliseconds UTC: from 1970 (the past means now) to the end of the year 9999."""
    return check_number(value, field, 0, INSTANT_MAX_MS, " ms")


def check_delay_ms(value: object, field: str = "delay_ms") -> Problem | None:
    """Checks a delay: 0 to ten years, in milliseconds."""
    return check_number(value, field, 0, DELAY_MAX_MS, " ms")


def check_timeout_ms(value: object, field: str = "timeout_ms") -> Problem | None:
    """Checks the time-out of an attempt: 1 ms (0 could only ever time out) to a year."""
    if value == 0 and not isinstance(value, bool):
        return invalid(field, "must be at least 1 ms; leave it out for no time-out")
    return check_number(value, field, 0, TIMEOUT_MAX_MS, " ms")


def check_payload(payload: object, field: str = "payload") -> Problem | None:
    """Checks an encoded payload: at most 512 KiB."""
    if type(payload) is not bytes:
        return invalid(field, f"must be bytes, not {type(payload).__name__}")
    if len(payload) > PAYLOAD_MAX_BYTES:
        size = f"{len(payload)} bytes, more than {PAYLOAD_MAX_BYTES}"
        message = f"{field} has {size}; put the data elsewhere and its address here"
        return Problem(code=RejectCode.PAYLOAD_TOO_LARGE, field=field, message=message)
    return None


def check_result(result: bytes | None, field: str = "result") -> Problem | None:
    """Checks an encoded result: at most 256 KiB."""
    if result is not None and len(result) > RESULT_MAX_BYTES:
        return invalid(field, f"has {len(result)} bytes, more than {RESULT_MAX_BYTES}")
    return None


def check_progress(value: object, field: str = "progress") -> Problem | None:
    """Checks a progress: a finite number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        return invalid(field, f"must be a number from 0 to 1, not {value!r}")
    return None


def check_spec(spec: JobSpec, *, derived: bool = False) -> Problem | None:
    """Checks a specification, cheapest first. `derived` allows the ids that schedules make.

    Fields of what is not built yet are refused with NOT_SUPPORTED rather than ignored.
    """
    return None if _is_everyday(spec) else _check_thoroughly(spec, derived=derived)


def _check_thoroughly(spec: JobSpec, *, derived: bool) -> Problem | None:
    return (
        check_id(spec.job_id, derived=derived)
        or check_name(spec.name)
        or check_queue(spec.queue)
        or check_text(spec.tenant, "tenant", TENANT_MAX_CHARS, empty=True)
        or check_text(spec.content_type, "content_type", CONTENT_TYPE_MAX_CHARS)
        or check_payload(spec.payload)
        or check_tags(spec.tags)
        or check_class(spec.priority, "priority", Priority)
        or check_class(spec.retry_jitter, "retry_jitter", bool)
        or check_class(spec.depends_on, "depends_on", tuple)
        or _check_times(spec)
        or _check_retry(spec)
        or (None if spec.retry_of is None else check_id(spec.retry_of, "retry_of", derived=True))
        or _check_supported(spec, derived=derived)
    )


def _is_everyday(spec: JobSpec) -> bool:
    """A quick yes for most specifications, several times faster than the checks by field; a no says nothing."""
    try:
        text = spec.job_id + spec.name + spec.tenant + spec.content_type
        return (
            text.isprintable()
            and 0 < len(spec.job_id) <= ID_MAX_CHARS
            and 0 < len(spec.name) <= NAME_MAX_CHARS
            and 0 < len(spec.content_type) <= CONTENT_TYPE_MAX_CHARS
            and len(spec.tenant) <= TENANT_MAX_CHARS
            and "@" not in spec.job_id
            and _is_queue(spec.queue)
            and spec.payload.__class__ is bytes
            and len(spec.payload) <= PAYLOAD_MAX_BYTES
            and spec.run_at_ms is None
            and spec.deadline_ms is None
            and spec.start_deadline_ms is None
            and spec.schedule_id is None
            and spec.retry_of is None
            and spec.tags == ()
            and spec.depends_on == ()
            and spec.priority.__class__ is Priority
            and spec.retry_jitter.__class__ is bool  # type: ignore[redundant-expr]  # by hand it may be anything
            and (spec.delay_ms is None or _is_whole(spec.delay_ms, DELAY_MAX_MS))
            and (spec.timeout_ms is None or (_is_whole(spec.timeout_ms, TIMEOUT_MAX_MS) and spec.timeout_ms > 0))
            and _is_whole(spec.max_retries, RETRIES_MAX)
            and _is_whole(spec.retry_base_delay_ms, RETRY_DELAY_MAX_MS)
            and _is_whole(spec.retry_max_delay_ms, RETRY_DELAY_MAX_MS)
            and _is_whole(spec.max_lost, RETRIES_MAX)
        )
    except (AttributeError, TypeError):
        return False


def _is_whole(value: int, maximum: int) -> bool:
    return value.__class__ is int and 0 <= value <= maximum


@lru_cache(maxsize=256)
def _is_queue(queue: str) -> bool:
    return check_queue(queue) is None


def _check_times(spec: JobSpec) -> Problem | None:
    if spec.run_at_ms is not None and spec.delay_ms is not None:
        return invalid("delay_ms", "and run_at_ms exclude each other: give one of them")
    return (
        (None if spec.run_at_ms is None else check_instant_ms(spec.run_at_ms))
        or (None if spec.delay_ms is None else check_delay_ms(spec.delay_ms))
        or (None if spec.timeout_ms is None else check_timeout_ms(spec.timeout_ms))
        or (None if spec.deadline_ms is None else check_instant_ms(spec.deadline_ms, "deadline_ms"))
        or (None if spec.start_deadline_ms is None else check_instant_ms(spec.start_deadline_ms, "start_deadline_ms"))
    )


def _check_retry(spec: JobSpec) -> Problem | None:
    return (
        check_number(spec.max_retries, "max_retries", 0, RETRIES_MAX)
        or check_number(spec.retry_base_delay_ms, "retry_base_delay_ms", 0, RETRY_DELAY_MAX_MS, " ms")
        or check_number(spec.retry_max_delay_ms, "retry_max_delay_ms", 0, RETRY_DELAY_MAX_MS, " ms")
        or check_number(spec.max_lost, "max_lost", 0, RETRIES_MAX)
    )


def _check_supported(spec: JobSpec, *, derived: bool) -> Problem | None:
    if spec.depends_on:
        message = "depends_on is not supported by this version; leave it out"
        return Problem(code=RejectCode.NOT_SUPPORTED, field="depends_on", message=message)
    if spec.schedule_id is not None and not derived:
        message = "schedule_id is set by schedules only; leave it out, or trigger the schedule"
        return Problem(code=RejectCode.NOT_SUPPORTED, field="schedule_id", message=message)
    return None


def check_command(
    command: SubmitJob | CancelJob | RescheduleJob | RetryJob, *, is_fired: bool = False
) -> Problem | None:
    """Checks a command with all that it carries. `is_fired`: a submit that a schedule sent."""
    problem = (
        check_text(command.command_id, "command_id", ID_MAX_CHARS)
        or check_text(command.actor, "actor", ACTOR_MAX_CHARS)
        or check_text(command.reason, "reason", REASON_MAX_CHARS, empty=True)
        or check_instant_ms(command.requested_at_ms, "requested_at_ms")
    )
    if problem is not None:
        return problem
    if isinstance(command, SubmitJob):
        return check_spec(command.spec, derived=is_fired)
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
