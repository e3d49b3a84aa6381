"""Rare paths that a run of many seeds must have taken: one that never met them proves nothing about them."""

from collections.abc import Mapping
from typing import Final

__all__ = ["RARE", "missing"]

# The numbered steps of the commit order, and the calls between them.
_STEPS: Final = (
    "read",
    "step",
    "begin",
    "produce",
    "produce_noted",
    "flush",
    "flushed",
    "send_offsets",
    "offsets_sent",
    "commit",
    "committed",
    "apply",
)

RARE: Final = (
    *(f"killed at {step}" for step in _STEPS),
    *(f"paused at {step}" for step in _STEPS),
    *(f"cut off at {step}" for step in _STEPS),
    # Transactions that end otherwise than they should.
    "transaction timed out",
    "transaction of an evicted member refused",
    "producer shut out",
    "late EndTxn",
    "unanswered commit took effect",
    "unanswered commit had no effect",
    "log: transaction aborted",
    "log: producer replaced: abort",
    "log: ending the transaction of a dead owner",
    "engine built anew",
    # Partitions that change hands.
    "partitions lost",
    "session expired",
    "members evicted",
    "log: offsets and changelog disagree, and are looked at again",
    "restored from a local table",
    "standby followed",
    "disk lost",
    "changelog compacted",
    "cluster away",
    "coordinator moved",
    "clock set back",
    "clock set forward",
    # Machines that never come back, while one of each role must do it all.
    *(f"{role} {how} for ever" for role in ("scheduler", "worker") for how in ("killed", "paused", "cut off")),
    # Offers, claims and reports that come late, twice or to the wrong one.
    "claim refused",
    "heartbeat written twice",
    "offer no_slots",
    "offer draining",
    "offer unknown_name",
    "stop not heard",
    "worker drained",
    "worker hurried",
    "attempt stopped: CANCEL_REQUESTED",
    "attempt stopped: LEASE_LOST",
    "report refused: NOT_RUNNING",
    "report refused: OTHER_INCARNATION",
    "report refused: STALE_ATTEMPT",
    "report refused: TERMINAL",
    "report refused: UNKNOWN_JOB",
    # Waits that a wall clock which was set back would have stretched.
    "JobRescheduled the wall clock was set back; a delay goes on",
    # Schedules: each outcome and policy, and what is done to them.
    *(f"OccurrenceFired {origin}" for origin in ("PLANNED", "BACKFILL", "TRIGGER")),
    *(f"OccurrencesSkipped {outcome}" for outcome in ("OVERLAP", "COALESCED", "MISSED", "PAUSED")),
    *(
        f"fired under {policy}"
        for policy in ("SKIP", "BUFFER_ONE", "BUFFER_ALL", "CANCEL_OTHER", "REPLACE_OTHER", "ALLOW_ALL")
    ),
    "InstancesStopped CANCELLED",
    "InstancesStopped REPLACED",
    "worker of an instance died",
    "SchedulePaused REQUESTED",
    "SchedulePaused INSTANCE_FAILED",
    "ScheduleCompleted END",
    "ScheduleCompleted MAX_RUNS",
    "ScheduleDeleted",
    "ScheduleRewound",
    "fired at the end of a gap",
    "fired at the second pass of an hour",
    *(f"clock {leap}" for leap in ("ahead by 24 h", "ahead by 1 h", "behind by 1 h")),
    *(
        f"schedule command rejected: {code}"
        for code in ("ALREADY_PAUSED", "NOT_PAUSED", "NOTHING_PLANNED", "UNKNOWN_SCHEDULE", "VERSION_CONFLICT")
    ),
    # The projector, and its database.
    "projector killed in the middle of a transaction",
    "killed projector",
    "paused projector",
    "cut off projector",
    # Ends that few jobs come to.
    "JobRetryScheduled LOST",
    "JobRetryScheduled RELEASED",
    "JobFailed LOST",
    "JobCancelRequested",
    "JobCancelled no worker knew the name of the job for too long",
    "JobCancelled not started by its start deadline",
    # Commands that are refused.
    "command rejected: BAD_KEY",
    "command rejected: DUPLICATE_JOB",
    "command rejected: NOT_WAITING",
    "command rejected: UNKNOWN_QUEUE",
)


def missing(seen: Mapping[str, int]) -> list[str]:
    """Those of the rare paths that were not taken."""
    return [path for path in RARE if not seen.get(path)]
