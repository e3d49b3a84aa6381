"""The checks of schedules and of the commands about them; what a rule means is checked where rules are expanded."""

from dataclasses import replace

from mainspring.schemas.bounds import (
    ACTOR_MAX_CHARS,
    BACKFILL_SPAN_MAX_MS,
    BUFFER_MAX,
    CATCH_UP_WINDOW_MAX_MS,
    ID_MAX_CHARS,
    REASON_MAX_CHARS,
    RUNS_MAX,
    SCHEDULE_ID_MAX_CHARS,
    SCHEDULE_NOTE_MAX_CHARS,
)
from mainspring.schemas.commands import BackfillSchedule, CreateSchedule, PauseSchedule, UpdateSchedule
from mainspring.schemas.epoch import instant_text
from mainspring.schemas.job import JobSpec
from mainspring.schemas.limits import (
    Problem,
    check_class,
    check_instant_ms,
    check_number,
    check_spec,
    check_text,
    invalid,
)
from mainspring.schemas.records import ScheduleCommand
from mainspring.schemas.schedule import CatchUp, Overlap, ScheduleSpec, ScheduleTiming

__all__ = ["check_schedule_command", "check_schedule_id", "check_schedule_spec", "schedule_of"]


def schedule_of(command: ScheduleCommand) -> str:
    """The schedule that a command is about."""
    if isinstance(command, CreateSchedule | UpdateSchedule):
        return command.spec.schedule_id
    return command.schedule_id


def check_schedule_id(text: object, field: str = "schedule_id") -> Problem | None:
    """Checks the id of a schedule: 1 to 200 printable characters without `@`, which its jobs have in theirs."""
    problem = check_text(text, field, SCHEDULE_ID_MAX_CHARS)
    if problem is None and isinstance(text, str) and "@" in text:
        return invalid(field, "must not contain '@', which stands before the time in the ids of its jobs")
    return problem


def check_schedule_spec(spec: ScheduleSpec) -> Problem | None:
    """Checks a definition but for what its rules mean: ids, policies, bounds, and the job as a job."""
    return (
        check_schedule_id(spec.schedule_id)
        or check_text(spec.note, "note", SCHEDULE_NOTE_MAX_CHARS, empty=True)
        or check_class(spec.timing, "timing", ScheduleTiming)
        or check_class(spec.job, "job", JobSpec)
        or check_class(spec.overlap, "overlap", Overlap)
        or check_class(spec.catch_up, "catch_up", CatchUp)
        or check_class(spec.pause_on_failure, "pause_on_failure", bool)
        or check_number(spec.catch_up_window_ms, "catch_up_window_ms", 0, CATCH_UP_WINDOW_MAX_MS)
        or check_number(spec.buffer_max, "buffer_max", 1, BUFFER_MAX)
        or (None if spec.max_runs is None else check_number(spec.max_runs, "max_runs", 1, RUNS_MAX))
        or _check_job(spec.job)
    )


def check_schedule_command(command: ScheduleCommand) -> Problem | None:
    """Checks a command about a schedule with all that it carries, but for what its rules mean."""
    problem = (
        check_text(command.command_id, "command_id", ID_MAX_CHARS)
        or check_text(command.actor, "actor", ACTOR_MAX_CHARS)
        or check_text(command.reason, "reason", REASON_MAX_CHARS, empty=True)
        or check_instant_ms(command.requested_at_ms, "requested_at_ms")
    )
    if problem is not None:
        return problem
    if isinstance(command, CreateSchedule | UpdateSchedule):
        return check_schedule_spec(command.spec)
    problem = check_schedule_id(command.schedule_id)
    if problem is None and isinstance(command, PauseSchedule):
        problem = check_text(command.note, "note", SCHEDULE_NOTE_MAX_CHARS, empty=True)
    if problem is None and isinstance(command, BackfillSchedule):
        problem = _check_range(command)
    return problem


def _check_range(command: BackfillSchedule) -> Problem | None:
    problem = check_instant_ms(command.from_ms, "from_ms") or check_instant_ms(command.until_ms, "until_ms")
    if problem is not None:
        return problem
    if command.from_ms > command.until_ms:
        first, last = instant_text(command.from_ms), instant_text(command.until_ms)
        return invalid("until_ms", f"must not be before from_ms, {first}, and is {last}")
    if command.until_ms - command.from_ms > BACKFILL_SPAN_MAX_MS:
        latest = instant_text(command.from_ms + BACKFILL_SPAN_MAX_MS)
        return invalid("until_ms", f"must be at most ten years after from_ms, {latest}; divide the range")
    return None


def _check_job(job: JobSpec) -> Problem | None:
    """The template: instances get their own id and time, and a fixed instant would be past for most of them."""
    if job.job_id:
        return invalid("job.job_id", f"must be empty, for every instance gets an id of its own, and is {job.job_id!r}")
    for name in ("run_at_ms", "delay_ms", "deadline_ms", "start_deadline_ms", "schedule_id", "retry_of"):
        if getattr(job, name) is not None:
            return invalid(f"job.{name}", "must be left out: it would be the same for every instance")
    problem = check_spec(replace(job, job_id="template"))
    return None if problem is None else replace(problem, field=f"job.{problem.field}", message=f"job.{problem.message}")
