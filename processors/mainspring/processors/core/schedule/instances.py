"""What the partition of a job tells the schedule that fired it."""

from mainspring.schemas.codes import InstanceOutcome
from mainspring.schemas.commands import SubmitJob
from mainspring.schemas.events import CommandRejected, JobCancelled, JobFailed
from mainspring.schemas.followups import InstanceFinished
from mainspring.schemas.records import JobEvent
from mainspring.schemas.tables import JobState

__all__ = ["finished", "refused"]


def finished(state: JobState, last: JobEvent) -> tuple[str, InstanceFinished]:
    """The schedule's id, and the news that a job of it has ended by the event `last`."""
    schedule_id = state.job_id.rpartition("@")[0]
    detail = ""
    if isinstance(last, JobFailed):
        detail = last.reason
    elif isinstance(last, JobCancelled):
        detail = last.cancel_code
    ended_ms = last.decided_at_ms if state.finished_at_ms is None else state.finished_at_ms
    return schedule_id, InstanceFinished(
        schedule_id=schedule_id,
        job_id=state.job_id,
        submit_command_id=state.submit_command_id,
        outcome=state.status.name,
        detail=detail,
        finished_at_ms=ended_ms,
    )


def refused(command: SubmitJob, rejection: CommandRejected) -> tuple[str, InstanceFinished]:
    """The schedule's id, and the news that there will be no job."""
    schedule_id = command.spec.schedule_id or ""
    return schedule_id, InstanceFinished(
        schedule_id=schedule_id,
        job_id=command.spec.job_id,
        submit_command_id=command.command_id,
        outcome=InstanceOutcome.REFUSED,
        detail=rejection.reject_code,
        finished_at_ms=rejection.decided_at_ms,
    )
