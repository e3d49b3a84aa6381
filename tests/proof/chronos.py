"""Schedules under faults: what should have been run by plain arithmetic, what was, and what must hold at the end."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import cycle, islice

from confluent_kafka import Producer

from mainspring.processors.projector import ProjectorError
from mainspring.processors.projector.view import ScheduleFilter, View
from mainspring.schemas import (
    CatchUp,
    CreateSchedule,
    CronRule,
    InstanceEnded,
    IntervalRule,
    JobCompleted,
    JobRetryScheduled,
    JobSpec,
    JobStarted,
    JobStatus,
    JobSubmitted,
    OccurrenceFired,
    Overlap,
    PauseSchedule,
    ScheduleCreated,
    SchedulePaused,
    ScheduleSpec,
    ScheduleStatus,
    ScheduleTiming,
)
from mainspring.schemas.schedule_limits import schedule_of
from mainspring.topics import partition_for
from tests.proof.faults import Faults
from tests.proof.ledger import AttemptKey
from tests.support.chronos import Run, Target, Verdict, check, multiples
from tests.support.view_rows import dump

NO_OTHERS: Mapping[JobStatus, int] = {}

_FLUSH_S = 30.0
_MAX_LOST = 50


@dataclass(slots=True)
class Chronos(Faults):
    """One run: the schedules of a site, and the faults that they go through.

    `every_ms` are the intervals to choose from, `cron_s` those of cron expressions: each divides a minute, so that
    `*/n` means the multiples since the epoch. `window_ms` is how late a run may begin.
    """

    count: int = 30
    every_ms: Sequence[int] = (1_000, 1_250, 1_500, 2_000)
    cron_s: Sequence[int] = (1, 2, 3)
    window_ms: int = 30_000
    nap_s: Sequence[float] = (0.0, 0.1, 0.3)
    definitions: list[ScheduleSpec] = field(default_factory=list)

    def begin(self) -> None:
        """Creates the schedules: two of three by intervals, anchored at their creation or elsewhere, others by cron."""
        intervals, crons, naps = cycle(self.every_ms), cycle(self.cron_s), cycle(self.nap_s)
        for number in range(self.count):
            rule: IntervalRule | CronRule
            if number % 3 == 2:
                rule = CronRule(expression=f"*/{next(crons)} * * * * *", seconds=True)
            else:
                rule = IntervalRule(every_ms=next(intervals), anchor_ms=None if number % 3 else 37 * number)
            self.definitions.append(_definition(f"s{number:03}", rule, next(naps)))
        now_ms = _now_ms()
        self._send(
            CreateSchedule(command_id=f"create-{spec.schedule_id}", actor="proof", requested_at_ms=now_ms, spec=spec)
            for spec in self.definitions
        )
        self.site.until(lambda: len(self.site.board.kinds[ScheduleCreated]) == self.count, "every schedule")

    @property
    def fired(self) -> int:
        """Occurrences that were fired so far."""
        return len(self.site.board.kinds[OccurrenceFired])

    def more(self, count: int) -> None:
        """Returns when so many more occurrences have been fired: in mid-load."""
        wanted = self.fired + count
        self.site.until(lambda: self.fired >= wanted, f"{count} more fires")

    def are_elsewhere(self, attempts: Iterable[AttemptKey]) -> bool:
        """Whether each of these attempts was given up and another one of its job was started."""
        starts = self.site.board.of
        return all(any(each.attempt > number for each in starts(JobStarted, job)) for job, number in attempts)

    def be_quiet(self, fires_each: int) -> float:
        """Lets everything be well until each schedule has fired so often again; when that began, epoch milliseconds."""
        began_ms = _now_ms()

        def again() -> bool:
            fires = Counter(
                event.schedule_id
                for event in islice(reversed(self.site.board.kinds[OccurrenceFired]), 100 * self.count)
                if event.decided_at_ms >= began_ms
            )
            return len(fires) == self.count and min(fires.values()) >= fires_each

        self.site.until(again, f"{fires_each} fires of each schedule")
        return began_ms

    def finish(self) -> None:
        """Pauses all, at once: what was planned until then is fired. Returns when every instance has ended."""
        now_ms = _now_ms()
        self._send(
            PauseSchedule(
                schedule_id=spec.schedule_id,
                command_id=f"pause-{spec.schedule_id}",
                actor="proof",
                requested_at_ms=now_ms,
                note="the end",
            )
            for spec in self.definitions
        )
        board = self.site.board
        self.site.until(lambda: len(board.kinds[SchedulePaused]) == self.count, "every schedule to be paused")
        self.site.until(lambda: len(board.kinds[InstanceEnded]) >= self.fired, "every instance to end")

    def targets(self) -> list[Target]:
        """What should have been run between the creation and the pause of each schedule."""
        created = {event.schedule_id: event.decided_at_ms for event in self.site.board.kinds[ScheduleCreated]}
        paused = {event.schedule_id: event.decided_at_ms for event in self.site.board.kinds[SchedulePaused]}
        found: list[Target] = []
        for spec in self.definitions:
            schedule_id = spec.schedule_id
            (rule,) = spec.timing.rules
            if isinstance(rule, CronRule):
                every_ms, anchor_ms = 1_000 * int(rule.expression.split()[0].removeprefix("*/")), 0
            else:
                every_ms = rule.every_ms
                anchor_ms = created[schedule_id] if rule.anchor_ms is None else rule.anchor_ms
            found += [
                Target(schedule_id=schedule_id, due_ms=due_ms, until_ms=due_ms + self.window_ms)
                for due_ms in multiples(every_ms, anchor_ms, created[schedule_id], paused[schedule_id])
            ]
        return found

    def runs(self) -> list[Run]:
        """What the handlers have written down."""
        ledger = self.site.ledger()
        wall_ms = time.time_ns() / 1e6 - time.monotonic_ns() / 1e6
        found: list[Run] = []
        for (job_id, attempt), entries in ledger.began.items():
            if not is_instance(job_id):
                continue
            schedule_id, _, nominal = job_id.partition("@")
            ended = ledger.ended.get((job_id, attempt))
            due_ms = round(datetime.fromisoformat(nominal).timestamp() * 1_000)
            found += [
                Run(
                    schedule_id=schedule_id,
                    begun_ms=entry.at_ns / 1e6 + wall_ms,
                    ended_ms=ended[0].at_ns / 1e6 + wall_ms if ended else None,
                    due_ms=due_ms,
                )
                for entry in entries
            ]
        return found

    def assert_nothing_was_missed_or_fired_twice(self) -> Verdict:
        """Every target has its run, and its one job; what ran more than once had lost a worker."""
        board, targets = self.site.board, self.targets()
        verdict = check(targets, self.runs())
        assert verdict.missed == (), f"{len(verdict.missed)} of {len(targets)} targets were missed"
        assert verdict.unnamed == (), "a target that no run says it is a run of"
        wanted = sorted((target.schedule_id, target.due_ms) for target in targets)
        assert sorted((event.schedule_id, event.nominal_ms) for event in board.kinds[OccurrenceFired]) == wanted
        for kind in (JobSubmitted, JobCompleted, InstanceEnded):
            times = Counter(event.job_id for event in board.kinds[kind] if is_instance(event.job_id))
            assert len(times) == len(targets)
            assert set(times.values()) == {1}, f"{kind.__name__} more than once for a job"
        assert {event.outcome for event in board.kinds[InstanceEnded]} == {"COMPLETED"}
        assert self.site.ledger().begun_twice() == set(), "an attempt was started twice"
        lost = {event.job_id for event in board.kinds[JobRetryScheduled]}
        assert set(self.site.ledger().duplicates()) <= lost, "a side effect was repeated without a lost attempt"
        return verdict

    def assert_the_log_agrees(self, others: Mapping[JobStatus, int] = NO_OTHERS) -> None:
        """`mainspring log verify`, and the view: it has everything, and is what one fold of the whole log gives.

        `others`: how many jobs of no schedule have come to which end.
        """
        ends = Counter({JobStatus.COMPLETED: self.fired}) + Counter(others)
        urls = [self.site.settings.view.url.get_secret_value(), f"sqlite:///{self.site.directory / 'again.db'}"]
        again = self.site.add("again", "projector", **{"view.url": urls[1]})
        for url in urls:
            self.site.until(lambda url=url: self._is_complete(url, ends), "the view to have every end")  # type: ignore[misc]
        code, report = self.site.verify()
        assert code == 0, report["findings"]
        assert report["schedules"] == report["view_schedules"] == self.count
        assert report["jobs_by_status"] == {status.name: count for status, count in ends.items()}
        for member in (self.site.members["projector"], again):
            member.kill()
        assert dump(urls[0]) == dump(urls[1]), "the view that lived through it is not the one that was folded anew"

    def _is_complete(self, url: str, ends: Mapping[JobStatus, int]) -> bool:
        try:
            with View(url) as view:
                found = view.schedules(ScheduleFilter(status=(ScheduleStatus.PAUSED,)), limit=500).schedules
                jobs = {status: count for status, count in view.counts().by_status.items() if count}
        except ProjectorError:
            return False  # not made yet
        ended = sum(each.fired for each in found if each.running == 0)
        return len(found) == self.count and ended == self.fired and jobs == ends

    def _send(self, commands: Iterable[CreateSchedule | PauseSchedule]) -> None:
        topic, codec = self.site.topology.commands, self.site.settings.codec()
        producer = Producer(self.site.settings.connection().producer_config())
        for command in commands:
            key = schedule_of(command).encode()
            producer.produce(topic.name, codec.encode(command), key, partition_for(key, topic.partitions))
        assert producer.flush(_FLUSH_S) == 0


def is_instance(job_id: str) -> bool:
    """Whether a schedule has fired this job."""
    return "@" in job_id


def _definition(schedule_id: str, rule: IntervalRule | CronRule, nap_s: float) -> ScheduleSpec:
    payload = f'{{"seconds": {nap_s}}}'.encode()
    return ScheduleSpec(
        schedule_id=schedule_id,
        timing=ScheduleTiming(rules=(rule,)),
        job=JobSpec(job_id="", name="nap", payload=payload, max_lost=_MAX_LOST),
        overlap=Overlap.ALLOW_ALL,
        catch_up=CatchUp.ALL,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
