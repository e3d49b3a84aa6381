"""All schedules as their events have told, and what they fired."""

from collections import Counter, defaultdict
from typing import Any, Final

from mainspring.schemas import (
    CatchUp,
    CommandRejected,
    IntervalRule,
    JobFailed,
    JobRetryScheduled,
    JobSubmitted,
    OccurrenceFired,
    Overlap,
    ScheduleCommandRejected,
    ScheduleCreated,
    ScheduleState,
    ScheduleStatus,
    ScheduleTiming,
    SubmitJob,
)
from tests.sim.planned import TIMES_OF_DAY
from tests.sim.recurring import FOLD_MS, GAP_MS
from tests.sim.schedule_model import ScheduleModel
from tests.sim.world import Violation, World

__all__ = ["ScheduleBook"]

_AHEAD_MS: Final = 25_000
"""A cursor is ahead of the clock by ten seconds at most; clocks are off by as much, and what is written takes time."""
_BEHIND_MS: Final = 60_000


class ScheduleBook:
    """By the events of schedules, and by those of their jobs."""

    def __init__(self, world: World) -> None:
        self.present: dict[str, ScheduleModel] = {}
        self.former: list[ScheduleModel] = []
        """Those that were deleted."""
        self.quiet_ms: int | None = None
        """From then on nothing goes wrong."""
        self._world = world
        self._answered: Counter[str] = Counter()
        """By the command id of a fire, how often its job was submitted or refused."""

    def see(self, event: Any) -> None:
        """Takes an event of a schedule. Raises Violation."""
        if isinstance(event, ScheduleCommandRejected):
            self._world.saw(f"schedule command rejected: {event.reject_code}")
            return
        schedule_id = event.schedule_id
        model = self.present.get(schedule_id)
        told = " ".join(
            str(getattr(event, name))
            for name in ("origin", "outcome", "pause_code", "completion_code", "how")
            if hasattr(event, name)
        )
        self._world.saw(f"{type(event).__name__} {told}".strip())
        if isinstance(event, ScheduleCreated):
            if model is not None or event.revision != 1:
                raise Violation("transitions legal", f"schedule {schedule_id} was created twice")
            self.present[schedule_id] = ScheduleModel(
                schedule_id, event.spec, event.decided_at_ms, event.incarnation, quiet_ms=self.quiet_ms
            )
            return
        if model is None:
            raise Violation("transitions legal", f"{type(event).__name__} of {schedule_id}, which is not there")
        if isinstance(event, OccurrenceFired):
            self._world.saw(f"fired under {model.spec.overlap.name}")
            self._see_change(event.nominal_ms, model.spec.timing)
        model.see(event)
        if model.is_gone:
            self.former.append(self.present.pop(schedule_id))

    def _see_change(self, nominal_ms: int, timing: ScheduleTiming) -> None:
        """Whether it was fired because the clocks of its zone change."""
        (rule, *others) = timing.rules
        if others or isinstance(rule, IntervalRule) or rule.expression not in TIMES_OF_DAY:
            return
        if timing.timezone != "UTC" and nominal_ms == GAP_MS:
            self._world.saw("fired at the end of a gap")
        elif timing.timezone != "UTC" and FOLD_MS < nominal_ms < FOLD_MS + 3_600_000:
            self._world.saw("fired at the second pass of an hour")

    def see_job(self, event: Any) -> None:
        """Takes an event of a job."""
        if isinstance(event, JobRetryScheduled | JobFailed) and event.reason == "LOST" and "@" in event.job_id:
            self._world.saw("worker of an instance died")
        is_answer = isinstance(event, JobSubmitted) or (
            isinstance(event, CommandRejected) and event.command == SubmitJob.__name__
        )
        if is_answer and "#" in event.command_id:
            self._answered[event.command_id] += 1

    def be_quiet(self, quiet_ms: int) -> None:
        """From a time on, every schedule is to be served as if nothing could go wrong."""
        self.quiet_ms = quiet_ms
        for model in self.present.values():
            model.quiet_ms = quiet_ms

    def alone(self) -> dict[str, set[str]]:
        """By schedule, jobs of which no two may run at once."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for model in (*self.former, *self.present.values()):
            found[f"{model.schedule_id}#{model.incarnation}"] |= model.alone
        return found

    def unsettled(self) -> list[str]:
        """Schedules that have something before them."""
        return [
            f"schedule {model.schedule_id} {model.status}, {len(model.unfinished)} instances, "
            f"{len(model.backfills)} backfills"
            for model in self.present.values()
            if model.status == "ACTIVE" or model.unfinished or (model.backfills and model.status != "PAUSED")
        ]

    def check_present(self) -> None:
        """When nothing has gone wrong for long: no schedule is silent, and none is behind. Raises Violation."""
        now_ms = self._world.true_ms
        for model in self.present.values():
            if model.status != "ACTIVE" or (model.active and model.spec.overlap is not Overlap.ALLOW_ALL):
                continue
            if model.cursor_ms > now_ms + _AHEAD_MS:
                detail = f"schedule {model.schedule_id} fires nothing before {model.cursor_ms}, and it is {now_ms}"
                raise Violation("no schedule silenced", f"{detail}; {' '.join(model.history[-12:])}")
            if model.spec.catch_up is not CatchUp.ALL and (left := model.surely_open(now_ms - _BEHIND_MS)):
                detail = f"schedule {model.schedule_id} has no outcome of {left[:5]} ({len(left)}), and it is {now_ms}"
                raise Violation("on time when all is well", f"{detail}; {' '.join(model.history[-12:])}")

    def check_end(self) -> None:
        """Everything that was fired is one job, or was one. Raises Violation."""
        fires: set[str] = set()
        for model in (*self.former, *self.present.values()):
            for revision, job_id in model.fires.items():
                command_id = f"{job_id}#{model.incarnation}.{revision}"
                fires.add(command_id)
                if self._answered[command_id] != 1:
                    detail = f"{command_id} was submitted or refused {self._answered[command_id]} times"
                    raise Violation("one fire, one job", detail)
        if strange := sorted(self._answered.keys() - fires):
            raise Violation("one fire, one job", f"{strange[0]} came from no fire")

    def check_row(self, row: ScheduleState) -> None:
        """A row of the table against the events. Raises Violation."""
        model = self.present.get(row.schedule_id)
        if model is None:
            raise Violation("table is the fold", f"a row of schedule {row.schedule_id}, which is not there")
        mine = (
            ScheduleStatus[model.status],
            model.revision,
            model.version,
            model.incarnation,
            model.cursor_ms,
            model.busy_ms,
            (model.runs, model.fired, model.skipped),
            [(revision, job_id) for revision, job_id in model.active.items()],
            [(command_id, *places) for command_id, places in model.backfills.items()],
        )
        theirs = (
            row.status,
            row.revision,
            row.version,
            row.incarnation,
            row.cursor_ms,
            row.busy_until_ms,
            (row.runs, row.fired, row.skipped),
            [(each.fired_revision, each.job_id) for each in row.active],
            [(each.command_id, each.after_ms, each.until_ms) for each in row.backfills],
        )
        if mine != theirs:
            detail = f"schedule {row.schedule_id}: events give {mine}, the row says {theirs}"
            raise Violation("table is the fold", detail)
