"""How an occurrence becomes a job, and how one that does not is recorded."""

from mainspring.processors.core.schedule.draft import Definition, Draft, submit_command_id
from mainspring.processors.core.timing import Occurrence
from mainspring.schemas.build import copier, quick
from mainspring.schemas.codes import FireOrigin, OccurrenceOutcome, StopMode
from mainspring.schemas.commands import CancelJob, SubmitJob
from mainspring.schemas.followups import InstanceReplaced
from mainspring.schemas.job import JobSpec
from mainspring.schemas.schedule_events import InstancesStopped, OccurrenceFired, OccurrencesSkipped

__all__ = ["actor_of", "fire", "skip", "stop_active"]


_new_fired = quick(OccurrenceFired)
_copy_job = copier(JobSpec, "job_id", "schedule_id", "run_at_ms")


def actor_of(schedule_id: str) -> str:
    """Who asks, in the commands that a schedule sends to its jobs."""
    return f"schedule {schedule_id}"


def fire(
    draft: Draft,
    definition: Definition,
    occurrence: Occurrence,
    origin: FireOrigin,
    *,
    command_id: str | None = None,
    actor: str | None = None,
    reason: str = "",
) -> None:
    """Fires an occurrence: its job is submitted at its own partition, which tells of its end."""
    state, now_ms = draft.present, draft.now_ms
    job_id = draft.job_id(occurrence.nominal_ms)
    draft.add(
        _new_fired(
            **draft.head(),
            nominal_ms=occurrence.nominal_ms,
            fire_at_ms=occurrence.fire_at_ms,
            origin=origin,
            job_id=job_id,
            version=state.version,
            command_id=command_id,
            actor=actor,
            reason=reason,
            tzdata=definition.tzdata,
        )
    )
    submit = SubmitJob(
        command_id=submit_command_id(job_id, state.incarnation, draft.present.revision),
        actor=actor_of(draft.schedule_id),
        reason=f"{origin}, version {state.version}",
        requested_at_ms=now_ms,
        # The nominal time is what the run is about; it has come, so the job is due at once.
        spec=_copy_job(
            definition.spec.job, job_id=job_id, schedule_id=draft.schedule_id, run_at_ms=occurrence.nominal_ms
        ),
    )
    draft.tell(job_id, submit)


def skip(
    draft: Draft, definition: Definition, outcome: OccurrenceOutcome, until: Occurrence, count: int, reason: str
) -> None:
    """Records that the next `count` occurrences behind the cursor, the last of them `until`, are not fired."""
    state = draft.present
    first = definition.next_after(state.cursor_ms) if count > 1 else until
    draft.add(
        OccurrencesSkipped(
            **draft.head(),
            outcome=outcome,
            first_ms=until.nominal_ms if first is None else first.nominal_ms,
            last_ms=until.nominal_ms,
            count=count,
            version=state.version,
            reason=reason,
            tzdata=definition.tzdata,
        )
    )


def stop_active(draft: Draft, how: StopMode, occurrence: Occurrence) -> None:
    """Lets the unfinished instances make room: asks them to stop, or ends their jobs at once."""
    state = draft.present
    stopped = [each for each in state.active if how is StopMode.REPLACED or not each.cancelled]
    job_ids = tuple(each.job_id for each in stopped)
    if not job_ids:
        return
    draft.add(InstancesStopped(**draft.head(), how=how, job_ids=job_ids, nominal_ms=occurrence.nominal_ms))
    successor = draft.job_id(occurrence.nominal_ms)
    for instance in stopped:
        job_id = instance.job_id
        if how is StopMode.REPLACED:
            replaced = InstanceReplaced(
                job_id=job_id,
                schedule_id=draft.schedule_id,
                submit_command_id=submit_command_id(job_id, state.incarnation, instance.fired_revision),
                replaced_by=successor,
            )
            draft.tell(job_id, replaced)
        else:
            cancel = CancelJob(
                job_id=job_id,
                command_id=submit_command_id(successor, state.incarnation, draft.present.revision),
                actor=actor_of(draft.schedule_id),
                reason=f"makes room for {successor}",
                requested_at_ms=draft.now_ms,
            )
            draft.tell(job_id, cancel)
