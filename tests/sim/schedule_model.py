"""What a schedule's events may say, written down once more and apart from the product: which times are planned, which
of them have an outcome, and what its policies allow."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from mainspring.schemas import (
    BackfillAccepted,
    BackfillEnded,
    CatchUp,
    CauseSource,
    InstanceEnded,
    InstancesStopped,
    OccurrenceFired,
    OccurrencesSkipped,
    Overlap,
    ScheduleCompleted,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleRewound,
    ScheduleSpec,
    ScheduleUpdated,
)
from mainspring.schemas.epoch import instant_text
from tests.sim.planned import planned
from tests.sim.world import Violation
from tests.support.fired import Fired

__all__ = ["ScheduleModel"]

ON_TIME_MS: Final = 10_000
"""What is late by no more than this is no catching up."""
REWIND_MIN_MS: Final = 10_000
LISTED: Final = 100
"""So many unfinished instances are waited for."""
PROMPT_MS: Final = 5_000
"""When nothing goes wrong, nothing is later than this."""

_WAITING: Final = (Overlap.BUFFER_ONE, Overlap.BUFFER_ALL, Overlap.CANCEL_OTHER)
_NEWEST: Final = (Overlap.CANCEL_OTHER, Overlap.REPLACE_OTHER)


@dataclass(slots=True)
class ScheduleModel:
    """One schedule from its creation to its deletion, as its events have told so far."""

    schedule_id: str
    spec: ScheduleSpec
    created_ms: int
    incarnation: int
    status: str = "ACTIVE"
    is_gone: bool = False
    revision: int = 1
    version: int = 1
    cursor_ms: int = 0
    """Up to here every planned time has its outcome."""
    busy_ms: int = 0
    """When the last instance that was alone has ended."""
    replaced_ms: int | None = None
    """The first of the times whose place the next one takes."""
    runs: int = 0
    fired: int = 0
    skipped: int = 0
    active: dict[int, str] = field(default_factory=dict)
    """The jobs of unfinished instances, by the revision that fired them."""
    unfinished: dict[int, str] = field(default_factory=dict)
    """The same with those that were replaced."""
    fires: dict[int, str] = field(default_factory=dict)
    """All jobs, by the revision that fired them."""
    alone: set[str] = field(default_factory=set)
    """The jobs that may not run beside each other."""
    backfills: dict[str, list[int]] = field(default_factory=dict)
    """After and until, of those under way."""
    is_crowded: bool = False
    """It had more instances than are listed."""
    history: list[str] = field(default_factory=list)
    quiet_ms: int | None = None
    """From then on nothing goes wrong."""
    _times: Fired = field(default_factory=Fired)
    _planned_fires: set[int] = field(default_factory=set)
    _must: tuple[tuple[type[Any], ...], str] | None = None
    """What has to come next, and why."""

    def __post_init__(self) -> None:
        self.cursor_ms = self.created_ms

    def see(self, event: Any) -> None:
        """Takes one event. Raises Violation."""
        self.history.append(f"{type(event).__name__}#{event.revision}@{event.decided_at_ms}")
        if event.revision != self.revision + 1:
            self._violated("revision contiguous", f"revision {event.revision} follows {self.revision}")
        self.revision = event.revision
        if self._must is not None and not isinstance(event, self._must[0]):
            self._violated("skipped for a reason", f"{type(event).__name__} follows {self._must[1]}")
        self._must = None
        if not isinstance(event, OccurrenceFired):
            self.replaced_ms = None
        _SEE[type(event)](self, event)

    def surely_open(self, until_ms: int) -> list[int]:
        """What is planned behind the cursor up to a time, and has no outcome."""
        return self._open(self.cursor_ms, until_ms)[0]

    def _open(self, after_ms: int, until_ms: int) -> tuple[list[int], list[int]]:
        return self._times.open(planned(self.spec.timing, self.created_ms, after_ms, until_ms))

    # What became of planned times.

    def _fire(self, event: OccurrenceFired) -> None:
        nominal_ms = event.nominal_ms
        if event.job_id != f"{self.schedule_id}@{instant_text(nominal_ms)}" or event.version != self.version:
            self._violated("one fire, one job", f"{event.job_id} of version {event.version} for {nominal_ms}")
        if event.origin == "TRIGGER":
            if nominal_ms in planned(self.spec.timing, self.created_ms, nominal_ms - 1, nominal_ms):
                self._violated("one fire, one job", f"a trigger takes the planned time {nominal_ms}")
        else:
            self._fire_planned(event)
        self._listed(event)
        self.fired += 1

    def _fire_planned(self, event: OccurrenceFired) -> None:
        nominal_ms, overlap = event.nominal_ms, self.spec.overlap
        if self.status == "PAUSED":
            self._violated("paused fires nothing", f"{event.job_id} was fired")
        if self._times.has(self.version, nominal_ms):
            self._violated("one fire, one job", f"{event.job_id} was fired by this version before")
        if self.active and overlap is not Overlap.ALLOW_ALL and not self.is_crowded:
            self._violated("overlap policy kept", f"{event.job_id} fired beside {list(self.active.values())}")
        if overlap not in (Overlap.ALLOW_ALL, Overlap.REPLACE_OTHER) and not self.is_crowded:
            self.alone.add(event.job_id)
        if event.origin == "BACKFILL":
            self._fill(event)
        else:
            self._check_plan(event)
            self._check_lateness(event)
            self._planned_fires.add(nominal_ms)
            self.runs += 1
            self.cursor_ms = nominal_ms
        self._times.add(self.version, nominal_ms)

    def _check_plan(self, event: OccurrenceFired) -> None:
        nominal_ms, timing = event.nominal_ms, self.spec.timing
        if self.status != "ACTIVE":
            self._violated("transitions legal", f"{event.job_id} fired while {self.status}")
        if nominal_ms in self._planned_fires:
            self._violated("one fire, one job", f"{event.job_id} was fired as planned before")
        surely, maybe = self._open(self.cursor_ms, nominal_ms)
        if not set(surely) <= {nominal_ms} <= set(maybe):
            self._violated("one outcome for each time", f"{nominal_ms} was fired, and planned are {maybe[:5]}")
        if not nominal_ms <= event.fire_at_ms <= min(nominal_ms + max(0, timing.jitter_ms - 1), event.decided_at_ms):
            self._violated(
                "never early", f"{event.job_id} fired at {event.decided_at_ms}, meant for {event.fire_at_ms}"
            )
        if self.spec.max_runs is not None and self.runs >= self.spec.max_runs:
            self._violated("no more runs than asked for", f"{event.job_id} is run {self.runs + 1}")

    def _check_lateness(self, event: OccurrenceFired) -> None:
        spec, late_ms = self.spec, event.decided_at_ms - event.fire_at_ms
        first_ms = event.nominal_ms if self.replaced_ms is None else self.replaced_ms
        if spec.overlap in _WAITING and (first_ms <= self.busy_ms or self.cursor_ms < self.busy_ms):
            return  # it, or one whose place it takes, has waited for an instance
        if late_ms > self._window_ms():
            self._violated("catch-up policy kept", f"{event.job_id} fired late by {late_ms} ms")
        if spec.catch_up is not CatchUp.ALL or spec.overlap in _NEWEST:
            later, _ = self._open(event.nominal_ms, event.decided_at_ms - spec.timing.jitter_ms)
            if later:
                self._violated("catch-up policy kept", f"{event.job_id} fired, and {later[0]} was due, too")
        if self._is_quiet(event.nominal_ms) and spec.catch_up is not CatchUp.ALL and late_ms > PROMPT_MS:
            self._violated("on time when all is well", f"{event.job_id} fired late by {late_ms} ms")

    def _is_quiet(self, nominal_ms: int) -> bool:
        return self.quiet_ms is not None and nominal_ms >= self.quiet_ms

    def _window_ms(self) -> int:
        return ON_TIME_MS if self.spec.catch_up is CatchUp.NONE else max(ON_TIME_MS, self.spec.catch_up_window_ms)

    def _listed(self, event: OccurrenceFired) -> None:
        if len(self.active) < LISTED:
            self.active[event.revision] = event.job_id
        else:
            self.is_crowded = True
        self.unfinished[event.revision] = self.fires[event.revision] = event.job_id

    def _skip(self, event: OccurrencesSkipped) -> None:
        surely, maybe = self._open(self.cursor_ms, event.last_ms)
        if not (
            len(surely) <= event.count <= len(maybe)
            and {event.first_ms, event.last_ms} <= set(maybe)
            and all(event.first_ms <= each for each in surely)
            and event.version == self.version
        ):
            detail = f"{event.count} skipped from {event.first_ms} to {event.last_ms}, and planned are {maybe[:5]}"
            self._violated("one outcome for each time", f"{detail} ({len(maybe)})")
        _SKIP[event.outcome](self, event)
        self.cursor_ms = event.last_ms
        self.skipped += event.count

    def _overlapped(self, event: OccurrencesSkipped) -> None:
        spec = self.spec
        newest_only = spec.overlap in _NEWEST and spec.catch_up is CatchUp.ALL
        is_busy = self.active or event.first_ms <= self.busy_ms or newest_only
        if spec.overlap is Overlap.CANCEL_OTHER:
            self.replaced_ms = event.first_ms
        if spec.overlap is Overlap.ALLOW_ALL or not is_busy:
            self._violated("skipped for a reason", f"overlapped with nothing: {event.first_ms} to {event.last_ms}")

    def _missed(self, event: OccurrencesSkipped) -> None:
        if event.cause.source is not CauseSource.TIMER and event.decided_at_ms - event.last_ms <= self._window_ms():
            self._must = (ScheduleUpdated, ScheduleDeleted), f"what was missed at {event.last_ms}, in the window"
        elif event.decided_at_ms - event.last_ms <= self._window_ms():
            self._violated("nothing missed within its window", f"{event.first_ms} to {event.last_ms}")
        elif self._is_quiet(event.first_ms) and self.spec.overlap is Overlap.ALLOW_ALL:
            self._violated("on time when all is well", f"missed: {event.first_ms} to {event.last_ms}")

    def _coalesced(self, event: OccurrencesSkipped) -> None:
        self._must = (OccurrenceFired,), f"a skip for a later one at {event.last_ms}"
        if self.spec.catch_up is CatchUp.ALL:
            self._violated("catch-up policy kept", f"{event.first_ms} to {event.last_ms} were not fired")

    def _paused_over(self, event: OccurrencesSkipped) -> None:
        self._must = (ScheduleResumed, ScheduleUpdated, ScheduleDeleted), f"a pause over {event.last_ms}"
        if self.status != "PAUSED":
            self._violated("skipped for a reason", f"skipped as paused while {self.status}")

    # Backfills.

    def _backfill(self, event: BackfillAccepted) -> None:
        self.backfills[event.command_id] = [event.from_ms - 1, event.until_ms]
        if event.count != len(planned(self.spec.timing, self.created_ms, event.from_ms - 1, event.until_ms)):
            self._violated("backfills are whole", f"{event.count} times from {event.from_ms} to {event.until_ms}")

    def _fill(self, event: OccurrenceFired) -> None:
        found = self.backfills.get(event.command_id or "")
        if found is None or not found[0] < event.nominal_ms <= found[1]:
            self._violated("backfills are whole", f"{event.job_id} is in no backfill")
        self._check_filled(found[0], event.nominal_ms - 1)
        if event.nominal_ms not in planned(self.spec.timing, self.created_ms, event.nominal_ms - 1, event.nominal_ms):
            self._violated("backfills are whole", f"{event.job_id} was never planned")
        found[0] = event.nominal_ms

    def _filled(self, event: BackfillEnded) -> None:
        after_ms, until_ms = self.backfills.pop(event.command_id)
        self._check_filled(after_ms, min(until_ms, self.cursor_ms) if self.status == "ACTIVE" else until_ms)

    def _check_filled(self, after_ms: int, until_ms: int) -> None:
        """What a backfill passes over was fired, also as one of a run of neighbours."""
        for nominal_ms in planned(self.spec.timing, self.created_ms, after_ms, until_ms):
            if not self._times.has(self.version, nominal_ms):
                self._violated("backfills are whole", f"{nominal_ms} was passed over and never fired")

    # Instances.

    def _end(self, event: InstanceEnded) -> None:
        if self.unfinished.pop(event.fired_revision, None) != event.job_id:
            self._violated("schedule freed once", f"{event.job_id} of revision {event.fired_revision} was not running")
        if self.active.pop(event.fired_revision, None) is not None and not self.active:
            self.busy_ms = max(self.busy_ms, min(event.finished_at_ms, event.decided_at_ms))

    def _stop(self, event: InstancesStopped) -> None:
        wanted = Overlap.REPLACE_OTHER if event.how == "REPLACED" else Overlap.CANCEL_OTHER
        if self.spec.overlap is not wanted or self.status != "ACTIVE":
            self._violated("overlap policy kept", f"{event.how} under {self.spec.overlap.name}")
        stopped = [revision for revision, job_id in self.active.items() if job_id in event.job_ids]
        if len(stopped) != len(event.job_ids):
            self._violated("overlap policy kept", f"{event.job_ids} were told to stop, and {self.active} run")
        if event.how == "REPLACED":
            self.alone.difference_update(event.job_ids)
            for revision in stopped:
                del self.active[revision]

    # Its own life.

    def _update(self, event: ScheduleUpdated) -> None:
        if event.version != self.version + 1:
            self._violated("versions contiguous", f"version {event.version} follows {self.version}")
        if event.plans_anew:
            self._close(event)
        elif event.spec.timing != self.spec.timing:
            self._violated("one outcome for each time", "another timing that is not planned anew")
        self.spec, self.version = event.spec, event.version
        self._times.version = event.version
        if self.status == "COMPLETED":
            self.status = "ACTIVE"

    def _resume(self, event: ScheduleResumed) -> None:
        if self.status != "PAUSED":
            self._violated("transitions legal", f"resumed while {self.status}")
        self._close(event)
        self.status = "ACTIVE"

    def _delete(self, event: ScheduleDeleted) -> None:
        self._close(event)
        self.is_gone = True

    def _close(self, event: Any) -> None:
        """Whatever was planned until now has its outcome."""
        if self.status != "COMPLETED" and (left := self.surely_open(event.decided_at_ms)):
            self._violated("one outcome for each time", f"{left[:5]} ({len(left)}) have none at {type(event).__name__}")
        self.cursor_ms = max(self.cursor_ms, event.decided_at_ms)

    def _pause(self, event: SchedulePaused) -> None:
        if self.status != "ACTIVE":
            self._violated("transitions legal", f"paused while {self.status}")
        if event.pause_code == "INSTANCE_FAILED" and not self.spec.pause_on_failure:
            self._violated("transitions legal", "paused by a failure, which it does not ask for")
        if event.pause_code == "UNPROCESSABLE":
            self._violated("transitions legal", f"paused as {event.reason}")
        self.status = "PAUSED"

    def _complete(self, event: ScheduleCompleted) -> None:
        timing, spec = self.spec.timing, self.spec
        is_over = timing.end_ms is not None and not self._open(self.cursor_ms, timing.end_ms)[0]
        has_run = spec.max_runs is not None and self.runs >= spec.max_runs
        if self.status != "ACTIVE" or not (has_run if event.completion_code == "MAX_RUNS" else is_over):
            self._violated("transitions legal", f"completed by {event.completion_code} while {self.status}")
        self.status = "COMPLETED"

    def _rewind(self, event: ScheduleRewound) -> None:
        if event.from_ms != self.cursor_ms or event.from_ms - event.to_ms <= REWIND_MIN_MS:
            self._violated("one outcome for each time", f"rewound from {event.from_ms} to {event.to_ms}")
        if event.to_ms < event.decided_at_ms:
            self._violated("one outcome for each time", f"rewound to {event.to_ms}, before {event.decided_at_ms}")
        self.cursor_ms = event.to_ms
        self.busy_ms = min(self.busy_ms, event.to_ms)
        self._times.rewound(event.to_ms)

    def _violated(self, invariant: str, detail: str) -> NoReturn:
        about = f"{self.spec.overlap.name} {self.spec.catch_up.name} {self.spec.timing}"
        raise Violation(invariant, f"schedule {self.schedule_id}: {detail}; {' '.join(self.history[-12:])}; {about}")


_SEE: Final[dict[type[Any], Callable[[ScheduleModel, Any], None]]] = {
    OccurrenceFired: ScheduleModel._fire,
    OccurrencesSkipped: ScheduleModel._skip,
    BackfillAccepted: ScheduleModel._backfill,
    BackfillEnded: ScheduleModel._filled,
    InstanceEnded: ScheduleModel._end,
    InstancesStopped: ScheduleModel._stop,
    ScheduleUpdated: ScheduleModel._update,
    ScheduleResumed: ScheduleModel._resume,
    ScheduleDeleted: ScheduleModel._delete,
    SchedulePaused: ScheduleModel._pause,
    ScheduleCompleted: ScheduleModel._complete,
    ScheduleRewound: ScheduleModel._rewind,
}

_SKIP: Final[dict[str, Callable[[ScheduleModel, OccurrencesSkipped], None]]] = {
    "OVERLAP": ScheduleModel._overlapped,
    "MISSED": ScheduleModel._missed,
    "COALESCED": ScheduleModel._coalesced,
    "PAUSED": ScheduleModel._paused_over,
}
