"""Draws `docs/schedule-lifecycle.md` from the transition table, so that the page cannot be wrong."""

from mainspring.processors.core.schedule.transitions import SCHEDULE_EDGES, SCHEDULE_RECORDS_ONLY, SCHEDULE_STAYS
from mainspring.schemas.codes import OccurrenceOutcome
from mainspring.schemas.schedule import ScheduleStatus
from mainspring.schemas.schedule_events import (
    BackfillAccepted,
    BackfillEnded,
    InstanceEnded,
    InstancesStopped,
    OccurrenceFired,
    OccurrencesSkipped,
    ScheduleCompleted,
    ScheduleCreated,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleRewound,
    ScheduleUpdated,
)

__all__ = ["WHAT_HAPPENED", "WHY_NOT_FIRED", "schedule_lifecycle_markdown"]

WHAT_HAPPENED: dict[type[object], str] = {
    ScheduleCreated: "a client's `CreateSchedule` is accepted; it fires from now on",
    ScheduleUpdated: "a client's `UpdateSchedule`; what runs keeps the version it was fired with, and where "
    "the timing changes, what was planned up to now gets its outcome by the old definition",
    SchedulePaused: "a client's `PauseSchedule`; or an instance failed for good and the schedule asks for a pause; "
    "or its occurrences cannot be computed",
    ScheduleResumed: "a client's `ResumeSchedule`; what was planned meanwhile is not made up for",
    ScheduleCompleted: "its last run was fired, or its last occurrence has an outcome",
    ScheduleDeleted: "a client's `DeleteSchedule`; instances run on",
    OccurrenceFired: "an occurrence became a job: planned, by a backfill, or by a client's `TriggerSchedule`",
    OccurrencesSkipped: "a run of neighbouring occurrences was not fired, all for the same reason",
    InstancesStopped: "an occurrence is due, and unfinished instances make room for it",
    ScheduleRewound: "the clock was set back: what was planned behind its present and was not fired is open again",
    InstanceEnded: "a fired job has ended, or its submit was refused",
    BackfillAccepted: "a client's `BackfillSchedule`",
    BackfillEnded: "all occurrences of the range have been fired",
}
"""What each event tells, in words."""

WHY_NOT_FIRED: dict[OccurrenceOutcome, str] = {
    OccurrenceOutcome.OVERLAP: "an instance had not ended, and the overlap policy keeps or drops them",
    OccurrenceOutcome.COALESCED: "a later one was due as well, and `LATEST` fires only that",
    OccurrenceOutcome.MISSED: "nobody was there to fire them inside the catch-up window",
    OccurrenceOutcome.PAUSED: "the schedule was paused",
}
"""What each outcome means."""


def schedule_lifecycle_markdown() -> str:
    """The page: a Mermaid state diagram, what the events say, and the outcomes. Ends with a line break."""
    stays: dict[type[object], list[str]] = {}
    for status, event in SCHEDULE_STAYS:
        stays.setdefault(event, []).append("" if status is None else status.name)
    lines = [
        "# The life of a schedule",
        "",
        "Drawn by `mainspring.processors.core.schedule.drawing` from the transition table; do not edit.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        *(
            f"    {_node(before)} --> {_node(after)}: {event.__name__}"
            for (before, event), after in SCHEDULE_EDGES.items()
        ),
        "```",
        "",
        "| event | says | leaves the status as it is in |",
        "|---|---|---|",
        *(
            f"| `{event.__name__}` | {words} | {', '.join(stays.get(event, ())) or '–'} |"
            for event, words in WHAT_HAPPENED.items()
        ),
        "",
        "Every other edge is refused with an error. "
        + " and ".join(f"`{event.__name__}`" for event in SCHEDULE_RECORDS_ONLY)
        + " changes nothing and may be written at any status, also for a schedule that is not there.",
        "",
        "Every planned occurrence has one outcome (the last, where `ScheduleRewound` opened it again): fired, or",
        "part of one `OccurrencesSkipped`:",
        "",
        *(f"- `{outcome}`: {words}." for outcome, words in WHY_NOT_FIRED.items()),
    ]
    return "\n".join(lines) + "\n"


def _node(status: ScheduleStatus | None) -> str:
    return "[*]" if status is None else status.name
