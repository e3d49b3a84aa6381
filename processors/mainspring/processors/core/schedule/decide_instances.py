"""Decisions on what a schedule hears of its instances, and on rules that cannot be computed."""

from mainspring.processors.core.schedule.draft import Draft, fired_revision
from mainspring.processors.core.schedule.evolve import has_failed
from mainspring.schemas.bounds import MESSAGE_MAX_CHARS
from mainspring.schemas.codes import PauseCode
from mainspring.schemas.followups import InstanceFinished
from mainspring.schemas.limits import clip
from mainspring.schemas.schedule import ScheduleSpec, ScheduleStatus
from mainspring.schemas.schedule_events import BackfillEnded, InstanceEnded, SchedulePaused

__all__ = ["decide_finished", "decide_unprocessable"]


def decide_finished(draft: Draft, spec: ScheduleSpec | None, finished: InstanceFinished) -> None:
    """Records the end of an instance; nothing, where it was one of a schedule that is gone."""
    state = draft.state
    if state is None:
        return
    revision = fired_revision(finished.submit_command_id, finished.job_id, state.incarnation)
    if revision is None:
        return
    draft.add(
        InstanceEnded(
            **draft.head(),
            job_id=finished.job_id,
            fired_revision=revision,
            outcome=finished.outcome,
            detail=finished.detail,
            finished_at_ms=finished.finished_at_ms,
        )
    )
    pauses = spec is not None and spec.pause_on_failure and has_failed(finished.outcome, finished.detail)
    if pauses and draft.present.status is ScheduleStatus.ACTIVE:
        reason = f"{finished.job_id} ended {finished.outcome}"
        draft.add(
            SchedulePaused(**draft.head(), pause_code=PauseCode.INSTANCE_FAILED, reason=reason, note=finished.detail)
        )


def decide_unprocessable(draft: Draft, detail: str) -> None:
    """Ends what needs the rules of a schedule that cannot be computed, so that it does not fail at every tick."""
    for backfill in draft.present.backfills:
        draft.add(BackfillEnded(**draft.head(), command_id=backfill.command_id))
    if draft.present.status is ScheduleStatus.ACTIVE:
        reason = clip(f"its occurrences cannot be computed: {detail}", MESSAGE_MAX_CHARS)
        draft.add(SchedulePaused(**draft.head(), pause_code=PauseCode.UNPROCESSABLE, reason=reason, note=""))
