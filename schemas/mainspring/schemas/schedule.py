"""The definition of a recurring schedule: when, what, and under which policies."""

from dataclasses import dataclass

from mainspring.schemas.job import JobSpec
from mainspring.schemas.named import NamedInt

__all__ = [
    "CatchUp",
    "CronRule",
    "FoldRule",
    "GapRule",
    "IntervalRule",
    "NamedCalendar",
    "Overlap",
    "ScheduleSpec",
    "ScheduleStatus",
    "ScheduleTiming",
]


class GapRule(NamedInt):
    """What becomes of a local time that the clock jumps over in spring."""

    END_OF_GAP = 0
    """It fires once, at the first instant after the gap."""
    SKIP = 1


class FoldRule(NamedInt):
    """What becomes of a local time that comes twice in autumn."""

    FIRST = 0
    SECOND = 1
    BOTH = 2


class CatchUp(NamedInt):
    """Which of the missed occurrences inside the catch-up window are fired."""

    LATEST = 0
    ALL = 1
    NONE = 2


class Overlap(NamedInt):
    """What becomes of an occurrence that is due while an instance of the schedule has not ended."""

    SKIP = 0
    BUFFER_ONE = 1
    """The first that comes waits, the others are skipped."""
    BUFFER_ALL = 2
    """They wait in order, up to a bound; beyond it the oldest are skipped."""
    CANCEL_OTHER = 3
    """The instance is cancelled, and once it has ended the newest that is due starts."""
    REPLACE_OTHER = 4
    """The instance is fenced, and the new one starts at once."""
    ALLOW_ALL = 5


class ScheduleStatus(NamedInt):
    """Where a schedule stands; a deleted one is nowhere."""

    ACTIVE = 0
    PAUSED = 1
    COMPLETED = 2
    """Nothing is planned any more: its end has come, or its last run. An update may revive it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRule:
    """Fires at anchor + phase + n · every."""

    every_ms: int
    anchor_ms: int | None = None
    """None: the time at which the schedule was created."""
    phase_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CronRule:
    """Fires where a cron expression matches the local time of the schedule's zone."""

    expression: str
    seconds: bool = False
    """Six fields, seconds first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCalendar:
    """Local dates, such as the bank holidays of a country, on which nothing fires."""

    name: str
    dates: tuple[str, ...]
    """As `2027-12-25`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTiming:
    """When a schedule fires: the union of its rules, minus what is excluded, between start and end."""

    rules: tuple[CronRule | IntervalRule, ...]
    exclude: tuple[CronRule | IntervalRule, ...] = ()
    calendars: tuple[NamedCalendar, ...] = ()
    timezone: str = "UTC"
    start_ms: int | None = None
    end_ms: int | None = None
    jitter_ms: int = 0
    """A deterministic delay of each occurrence below this, and never past the next one."""
    gap: GapRule = GapRule.END_OF_GAP
    fold: FoldRule = FoldRule.FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """What fires when, and under which policies; one version of it."""

    schedule_id: str
    timing: ScheduleTiming
    job: JobSpec
    """The template: `job_id` is empty, `run_at_ms` and `delay_ms` are None."""
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_window_ms: int = 3_600_000
    overlap: Overlap = Overlap.SKIP
    buffer_max: int = 1_000
    max_runs: int | None = None
    """How many occurrences are fired; those that are skipped do not count."""
    pause_on_failure: bool = False
    """Pause once an instance has used up its retries."""
    note: str = ""
