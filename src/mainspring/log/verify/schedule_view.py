"""The schedules of the view and their ledgers against the fold, exactly up to where the view stands."""

from typing import TYPE_CHECKING

from mainspring.log.verify.findings import Check, Findings
from mainspring.log.verify.schedules import ScheduleAuditor
from mainspring.log.verify.tables import differences

if TYPE_CHECKING:
    from mainspring.processors.projector.view import Snapshot

__all__ = ["compare_schedule_view"]


def compare_schedule_view(snapshot: "Snapshot", partition: int, auditor: ScheduleAuditor, findings: Findings) -> int:
    """Reports what the view has of a partition's schedules that is not the fold. Returns how many schedules it has.

    The auditor has folded what the view has, and nothing beyond it.
    """
    seen: set[str] = set()
    for state, spec in snapshot.schedules(partition):
        schedule_id = state.schedule_id
        seen.add(schedule_id)
        fold = auditor.states.get(schedule_id)
        if fold is None:
            _add(findings, Check.VIEW_EXTRA, schedule_id, "in the view, and by its events there is none")
        elif detail := differences(state, fold):
            _add(findings, Check.VIEW_DIFFERS, schedule_id, detail)
        elif spec != auditor.specs[schedule_id]:
            _add(findings, Check.VIEW_DIFFERS, schedule_id, "its definition is not what was last accepted")
    for schedule_id, fold in auditor.states.items():
        if schedule_id not in seen:
            detail = f"{fold.status.name} by its events and not in the view"
            _add(findings, Check.VIEW_ABSENT, schedule_id, detail)
    if snapshot.keeps_all:
        _compare_ledgers(snapshot, partition, auditor, findings)
    return len(seen)


def _compare_ledgers(snapshot: "Snapshot", partition: int, auditor: ScheduleAuditor, findings: Findings) -> None:
    """Of the schedules that exist: what a former one of the same id had is counted nowhere."""
    counted = {
        (ledger.schedule_id, ledger.incarnation): (ledger.fired, ledger.skipped)
        for ledger in snapshot.ledgers(partition)
    }
    for schedule_id, fold in auditor.states.items():
        fired, skipped = counted.get((schedule_id, fold.incarnation), (0, 0))
        if (fired, skipped) != (fold.fired, fold.skipped):
            counts = f"{fired} fired and {skipped} skipped"
            detail = f"its ledger has {counts}, and the fold gives {fold.fired} and {fold.skipped}"
            _add(findings, Check.VIEW_DIFFERS, schedule_id, detail)


def _add(findings: Findings, check: Check, schedule_id: str, detail: str) -> None:
    findings.add(check, f"schedule {schedule_id!r}: {detail}")
