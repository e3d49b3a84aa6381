"""What the demo will submit and how each job must end: written down before anything is submitted."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from mainspring.cli.demo import jobs
from mainspring.client.commands import Submission
from mainspring.jobs import JobCall, JobOptions, JobPriority
from mainspring.processors.core.timing import occurrence_id
from mainspring.schemas.codes import CancelCode, FailReason
from mainspring.schemas.common import JobStatus

__all__ = [
    "CANCEL_RUNNING",
    "CANCEL_WAITING",
    "MEANWHILE",
    "PARTITIONS",
    "PULSE",
    "PULSE_EVERY_S",
    "Expected",
    "Kind",
    "Planned",
    "bound",
    "make_plan",
    "write_plan",
]

PULSES, PULSE_EVERY_S = 12, 1
"""Through both kills, and over before the last of the delayed jobs."""
MEANWHILE_JOBS = 12
"""Enough that each of the partitions has some."""
PARTITIONS = 4

VIDEO_S = 6.0
"""Longer than it takes to get to the kills, so that attempts run when they come."""

_FIRST_DELAY_S, _DELAY_STEP_S = 1.0, 0.7
_PRIMES_BELOW = {500_000: 41_538, 1_000_000: 78_498, 2_000_000: 148_933, 3_000_000: 216_816}
_NEVER_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """How a job must end.

    Attributes:
        status: its last state.
        code: why it failed or was cancelled; None for other ends.
        attempts: how many attempts it takes. Those lost with a killed worker come on top.
        by_number: the handler goes by the number of the attempt, so those lost before the last count, too.
        result: what it returns, for jobs that complete.
        not_before_ms: how long after its submit it may start at the earliest.
    """

    status: JobStatus
    attempts: int = 1
    by_number: bool = False
    code: str | None = None
    result: Any = None
    not_before_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Jobs of one kind: their ids begin with `name`; `row` groups kinds where there is little room."""

    name: str
    label: str
    row: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One job of the plan."""

    job_id: str
    kind: Kind
    submission: Submission
    expected: Expected

    @property
    def is_fired(self) -> bool:
        """Whether a schedule fires it, and nobody submits it."""
        return self.kind is PULSE

    @property
    def is_meanwhile(self) -> bool:
        """Whether it is submitted while a scheduler is dead, and not at the start."""
        return self.kind is MEANWHILE


CANCEL_WAITING = Kind(name="cancel-waiting", label="cancelled while waiting", row="cancelled, waiting")
CANCEL_RUNNING = Kind(name="cancel-running", label="cancelled while running", row="cancelled, running")

MEANWHILE = Kind(name="meanwhile", label="while a scheduler is dead", row="while one is dead")

PULSE = Kind(name="pulse", label="fired by a schedule, every second", row="recurring, every second")

_NOW = Kind(name="email", label="at once, async", row="at once, async")
_DELAYED = Kind(name="reminder", label="delayed, 1 to 14 s", row="delayed")
_PRIORITIES = {
    priority: Kind(name=priority.name.lower(), label=f"priority {priority.name}", row="each of four priorities")
    for priority in sorted(JobPriority, reverse=True)
}
_THREAD = Kind(name="report", label="reports, in threads", row="in threads")
_PROCESS = Kind(name="thumbnail", label="thumbnails, in processes", row="in processes")
_LONG = Kind(name="video", label=f"videos, {VIDEO_S:g} s each", row=f"{VIDEO_S:g} s long")
_RETRIED = Kind(name="payment", label="fails twice, then works", row="fails, is retried")
_EXHAUSTED = Kind(name="feed", label="fails at every attempt", row="fails every time")
_FAILED = Kind(name="invoice", label="fails for good, no retry", row="fails for good")
_TIMED_OUT = Kind(name="partner", label="times out, twice", row="times out")

_DONE = JobStatus.COMPLETED


def make_plan() -> tuple[Planned, ...]:
    """Every job that the demo submits, in the order of its submit."""
    return (
        *_many(_LONG, 12, jobs.video.job(VIDEO_S), Expected(status=_DONE, result="encoded")),
        *_emails(_NOW, 20),
        *(planned for kind in _PRIORITIES.items() for planned in _prioritised(*kind)),
        *(_one(_THREAD, n, jobs.report.job(n), Expected(status=_DONE, result=n)) for n in range(1, 9)),
        *(
            _one(_PROCESS, n, jobs.thumbnail.job(size), Expected(status=_DONE, result=primes))
            for n, (size, primes) in enumerate(2 * list(_PRIMES_BELOW.items()), 1)
        ),
        *_delayed(),
        *_many(PULSE, PULSES, jobs.pulse.job(), Expected(status=_DONE, result="beat")),
        *_awkward(),
        *_emails(MEANWHILE, MEANWHILE_JOBS),
    )


def bound(plan: tuple[Planned, ...], first: datetime) -> tuple[Planned, ...]:
    """The plan with the ids that the instances of its schedule have, now that the time of the first is known."""
    fired = [planned.job_id for planned in plan if planned.is_fired]
    first_ms = round(first.timestamp() * 1000)
    ids = {job_id: occurrence_id(PULSE.name, first_ms + nth * PULSE_EVERY_S * 1000) for nth, job_id in enumerate(fired)}
    return tuple(replace(planned, job_id=ids.get(planned.job_id, planned.job_id)) for planned in plan)


def _awkward() -> Iterator[Planned]:
    """Jobs that end otherwise than at the first attempt."""
    failed, cancelled = JobStatus.FAILED, JobStatus.CANCELLED
    yield from _many(_RETRIED, 3, jobs.payment.job(), Expected(status=_DONE, attempts=3, by_number=True, result="paid"))
    yield from _many(_EXHAUSTED, 2, jobs.feed.job(), Expected(status=failed, attempts=3, code=FailReason.FAILED))
    yield from _many(_FAILED, 2, jobs.invoice.job(), Expected(status=failed, code=FailReason.FAILED))
    yield from _many(_TIMED_OUT, 2, jobs.partner.job(), Expected(status=JobStatus.TIMED_OUT, attempts=2))
    waiting = jobs.forever.job().with_options(delay=_NEVER_S)
    yield from _many(CANCEL_WAITING, 2, waiting, Expected(status=cancelled, attempts=0, code=CancelCode.REQUESTED))
    yield from _many(CANCEL_RUNNING, 2, jobs.forever.job(), Expected(status=cancelled, code=CancelCode.REQUESTED))


def _emails(kind: Kind, count: int) -> Iterator[Planned]:
    for number in range(1, count + 1):
        to = f"{kind.name}-{number}@example.org"
        yield _one(kind, number, jobs.email.job(to), Expected(status=_DONE, result=f"sent to {to}"))


def _prioritised(priority: JobPriority, kind: Kind) -> Iterator[Planned]:
    for planned in _emails(kind, 4):
        yield _with(planned, JobOptions(job_id=planned.job_id, priority=priority), planned.expected)


def _delayed() -> Iterator[Planned]:
    for index, planned in enumerate(_emails(_DELAYED, 19)):
        delay_s = round(_FIRST_DELAY_S + index * _DELAY_STEP_S, 1)
        expected = Expected(status=_DONE, result=planned.expected.result, not_before_ms=round(delay_s * 1000))
        yield _with(planned, JobOptions(job_id=planned.job_id, delay=delay_s), expected)


def _many(kind: Kind, count: int, call: JobCall, expected: Expected) -> Iterator[Planned]:
    return (_one(kind, number, call, expected) for number in range(1, count + 1))


def _one(kind: Kind, number: int, call: JobCall, expected: Expected) -> Planned:
    job_id = f"{kind.name}-{number:02}"
    submission = Submission(call, options=JobOptions(job_id=job_id, tags=(kind.name,)))
    return Planned(job_id=job_id, kind=kind, submission=submission, expected=expected)


def _with(planned: Planned, options: JobOptions, expected: Expected) -> Planned:
    """The same job under more terms."""
    submission = Submission(planned.submission.job, options=options.over(planned.submission.options))
    return Planned(job_id=planned.job_id, kind=planned.kind, submission=submission, expected=expected)


def write_plan(plan: tuple[Planned, ...], path: Path) -> None:
    """Keep the plan as JSON: a job a line, with how it must end."""
    lines = (json.dumps({"job_id": job.job_id, "kind": job.kind.label, **_expected_json(job.expected)}) for job in plan)
    path.write_text("[\n  " + ",\n  ".join(lines) + "\n]\n", encoding="utf-8")


def _expected_json(expected: Expected) -> dict[str, Any]:
    return {
        "status": expected.status.name,
        "code": expected.code,
        "attempts": expected.attempts,
        "attempts_by_number": expected.by_number,
        "result": expected.result,
        "not_before_ms": expected.not_before_ms,
    }
