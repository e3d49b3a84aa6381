"""A user's job as a `JobSpec`: everything is checked here, before anything is produced."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from mainspring.jobs.app import JobCall, JobFunction
from mainspring.jobs.base import Job, options_of, payload_fields
from mainspring.jobs.errors import InvalidJobError, PayloadMismatchError
from mainspring.jobs.handler import Handler, for_class
from mainspring.jobs.ids import new_job_id
from mainspring.jobs.models import JobPriority
from mainspring.jobs.options import NO_OPTIONS, JobOptions
from mainspring.jobs.payload import JSON, EncodingError, PayloadCodec, to_tree
from mainspring.jobs.policy import RetryPolicy
from mainspring.schemas.build import quick
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.job import JobSpec
from mainspring.schemas.limits import check_delay_ms, check_spec
from mainspring.schemas.spread import spread_over

__all__ = ["Submittable", "new_job_id", "to_spec"]

Submittable: TypeAlias = Job | JobCall | JobFunction[..., Any] | Handler | str
"""What can be submitted: a job object, a call of a registered function, or a name."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
MAX_LOST = 3
"""Attempts that may be lost with their worker, where nobody says otherwise."""
_new_spec = quick(JobSpec)
_NO_RETRY = RetryPolicy(max_retries=0)  # its delays are those of the schema


def to_spec(
    job: Submittable,
    args: Sequence[object] | Mapping[str, object] | None = None,
    *,
    options: JobOptions | None = None,
    codec: PayloadCodec = JSON,
) -> JobSpec:
    """The specification of a job, complete and checked.

    Args:
        job: a job object, a call (`handler.job(…)`), a registered function or its handler, or a bare name.
        args: arguments for a function, handler or name: a mapping, or a sequence where the parameters are known. A job
            object and a call have theirs.
        options: terms that override the job's own, which override the handler's.
        codec: writes the arguments of a bare name; a handler brings its App's.

    Raises:
        InvalidJobError: a field that the scheduler would refuse; nothing was sent.
        PayloadMismatchError: arguments that do not fit the handler's signature.
    """
    name, tree, own, defaults, codec = _take_apart(job, args, codec)
    try:
        payload = codec.encode(tree) if tree else b"{}" if codec is JSON else codec.encode({})
    except EncodingError as error:
        field = f"payload.{error.field}" if error.field else "payload"
        raise _refuse(field, error.problem) from error
    terms = (options or NO_OPTIONS).over(own).over(defaults)
    spec = _spec(name, payload, codec.content_type, terms)
    problem = check_spec(spec)
    if problem is not None:
        raise InvalidJobError(problem.code, problem.field, problem.message)
    return spec


def _take_apart(
    job: Submittable, args: Sequence[object] | Mapping[str, object] | None, codec: PayloadCodec
) -> tuple[str, Mapping[str, Any], JobOptions, JobOptions, PayloadCodec]:
    """Name, arguments as a tree, the job's own terms, its handler's terms, and the codec."""
    if isinstance(job, JobCall | Job) and args is not None:
        raise InvalidJobError(
            RejectCode.INVALID_FIELD, "args", "args must be left out: the job has its arguments already"
        )
    if isinstance(job, JobCall):
        return job.handler.name, job.arguments, job.options, job.handler.defaults, job.handler.codec
    if isinstance(job, Job):
        cls = type(job)
        handler = cls.registered_handler or for_class(cls, codec=codec)
        values = {field.name: getattr(job, field.name) for field in payload_fields(cls)}
        return handler.name, handler.signature.bind((), values), options_of(job), handler.defaults, handler.codec
    if isinstance(job, JobFunction | Handler):
        handler = job.handler if isinstance(job, JobFunction) else job
        positional, named = ((), args or {}) if args is None or isinstance(args, Mapping) else (args, {})
        return handler.name, handler.signature.bind(positional, named), NO_OPTIONS, handler.defaults, handler.codec
    if not isinstance(job, str):
        raise InvalidJobError(
            RejectCode.INVALID_FIELD, "name", f"job must be a job, a call of one or a name, not {job!r}"
        )
    if args is not None and not isinstance(args, Mapping):
        raise PayloadMismatchError(job, {"": "a job given by name takes its arguments by name: pass a mapping"})
    try:
        return job, to_tree(dict(args or {})), NO_OPTIONS, NO_OPTIONS, codec
    except EncodingError as error:
        raise _refuse("payload", error.problem) from error


def _spec(name: str, payload: bytes, content_type: str, terms: JobOptions) -> JobSpec:
    job_id = _text("job_id", new_job_id() if terms.job_id is None else terms.job_id)
    shared = _shared(terms)
    return _new_spec(
        job_id=job_id,
        name=_text("name", name),
        payload=payload,
        content_type=content_type,
        **(shared if terms.spread is None else shared | _spread(job_id, terms.spread, shared)),
    )


def _spread(job_id: str, spread: object, fields: Mapping[str, Any]) -> dict[str, int]:
    """The time of one job of many at one instant, as many whole milliseconds later as its id says."""
    problem = check_delay_ms(window_ms := _duration_ms("spread", spread), "spread")
    if problem is not None:
        raise InvalidJobError(problem.code, problem.field, problem.message)
    due = {name: fields[name] for name in ("run_at_ms", "delay_ms") if fields[name] is not None}
    if not due:
        raise _refuse("spread", "needs run_at or delay: it says how much later than that the job may start")
    later_ms = spread_over(job_id, window_ms)
    return {name: at_ms + later_ms for name, at_ms in due.items()}


_latest: tuple[JobOptions, dict[str, Any]] | None = None


def _shared(terms: JobOptions) -> dict[str, Any]:
    """The fields that follow from the terms alone. Many jobs in a row have the same terms: those are read once."""
    global _latest  # noqa: PLW0603 - one pair, replaced as a whole: threads may at worst read terms twice
    latest = _latest
    if latest is not None and latest[0] is terms:
        return latest[1]
    fields = _fields(terms)
    given: tuple[object, object] = (terms.tags, terms.depends_on)
    if not any(isinstance(value, list) for value in given):  # a list, wrong as it is, may change under the same terms
        _latest = terms, fields
    return fields


def _fields(terms: JobOptions) -> dict[str, Any]:
    retry = _NO_RETRY if terms.retry is None else terms.retry
    _expect("retry", retry, RetryPolicy)
    return {
        "queue": _text("queue", "default" if terms.queue is None else terms.queue),
        "priority": _priority(terms.priority),
        "tenant": _text("tenant", terms.tenant or ""),
        "run_at_ms": _instant_ms("run_at", terms.run_at),
        "delay_ms": _duration_ms("delay", terms.delay),
        "timeout_ms": _duration_ms("timeout", terms.timeout),
        "max_retries": retry.max_retries,
        "retry_base_delay_ms": _duration_ms("retry.base_delay", retry.base_delay),
        "retry_max_delay_ms": _duration_ms("retry.max_delay", retry.max_delay),
        "retry_jitter": retry.jitter,
        "max_lost": MAX_LOST if terms.max_lost is None else _whole("max_lost", terms.max_lost),
        "deadline_ms": _instant_ms("deadline", terms.deadline),
        "start_deadline_ms": _instant_ms("start_deadline", terms.start_deadline),
        "tags": _texts("tags", terms.tags),
        "depends_on": _texts("depends_on", terms.depends_on),
        "schedule_id": terms.schedule_id,
    }


def _refuse(field: str, message: str) -> InvalidJobError:
    return InvalidJobError(RejectCode.INVALID_FIELD, field, f"{field} {message}")


def _expect(field: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise _refuse(field, f"must be a {kind.__name__}, not {value!r}")


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise _refuse(field, f"must be text, not {value!r}")
    return value


def _texts(field: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        raise _refuse(field, f"must be a sequence of texts, not {value!r}")
    items = sorted(value) if isinstance(value, set | frozenset) else value
    return tuple(_text(field, item) for item in items)


def _priority(value: object) -> JobPriority:
    if value is None:
        return JobPriority.MEDIUM
    if isinstance(value, bool) or not isinstance(value, int) or value not in list(JobPriority):
        raise _refuse("priority", f"must be a JobPriority (LOW, MEDIUM, HIGH, CRITICAL), not {value!r}")
    return JobPriority(value)


def _whole(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refuse(field, f"must be a whole number, not {value!r}")
    return value


def _duration_ms(field: str, value: object) -> Any:
    """Milliseconds, rounded up so that nothing becomes shorter than asked."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        return -(-value // _MS)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refuse(field, f"must be seconds or a timedelta, not {value!r}")
    if not math.isfinite(value):
        raise _refuse(field, f"must be a finite number of seconds, not {value!r}")
    # Microseconds first: 0.1 s is 100 ms, although 0.1 * 1000 is a little more.
    return value * 1000 if isinstance(value, int) else -(-round(value * 1_000_000) // 1000)


def _instant_ms(field: str, value: object) -> int | None:
    """Epoch milliseconds, rounded up so that nothing starts before its time."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise _refuse(field, f"must be a datetime with a time zone, not {value!r}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise _refuse(
            field, f"must have a time zone, and {value.isoformat()} is naive; say which one, as in datetime.now(UTC)"
        )
    return -((_EPOCH - value) // _MS)
