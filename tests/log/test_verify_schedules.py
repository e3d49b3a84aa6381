"""The auditor knows schedules: a right log passes, and each fault that is seeded is found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from mainspring.log import history, state_at
from mainspring.log.source import Raw, Span
from mainspring.log.verify import Check, verify
from mainspring.log.verify.report import VerifyReport
from mainspring.schemas import (
    BackfillSchedule,
    CatchUp,
    Cause,
    CauseSource,
    DeleteSchedule,
    InstanceEnded,
    JobRescheduled,
    JobSpec,
    JobSubmitted,
    OccurrenceFired,
    OccurrencesSkipped,
    Overlap,
    PauseSchedule,
    ResumeSchedule,
    ScheduleCreated,
    SchedulePaused,
    ScheduleResumed,
    ScheduleRewound,
    ScheduleUpdated,
    SubmitJob,
    TriggerSchedule,
    UpdateSchedule,
)
from mainspring.topics import Topic, Topology
from tests.log.schedule_log import MINUTE, ScheduleLog, definition
from tests.support.synthetic_log import START_MS

HOUR = 60 * MINUTE
DAY = 24 * HOUR


def audited(log: ScheduleLog) -> VerifyReport:
    return verify(log.log, log.codec)


def life() -> ScheduleLog:
    """A schedule that fires, waits, catches up, is paused, changed, triggered and backfilled."""
    log = ScheduleLog().create().later(MINUTE)
    log.run(log.events(OccurrenceFired)[-1].job_id).later(MINUTE)
    log.later(3 * MINUTE)
    log.run(log.events(OccurrenceFired)[-1].job_id).later(MINUTE)
    log.run(log.events(OccurrenceFired)[-1].job_id).later(10 * MINUTE + 5_000)
    log.run(log.events(OccurrenceFired)[-1].job_id)
    log.command(PauseSchedule, note="later").later(4 * MINUTE).command(ResumeSchedule).later(MINUTE)
    log.run(log.events(OccurrenceFired)[-1].job_id)
    log.command(UpdateSchedule, spec=definition(every_ms=2 * MINUTE, overlap=Overlap.REPLACE_OTHER))
    log.later(2 * MINUTE).later(2 * MINUTE).command(TriggerSchedule)
    return log.later(2 * MINUTE)


def test_a_life_of_a_schedule_passes_and_is_counted() -> None:
    report = audited(life())

    assert report.findings == ()
    assert report.schedules == 1
    assert report.events["OccurrenceFired"] > 5
    assert {"COALESCED", "OVERLAP", "PAUSED"} <= {each.outcome for each in life().events(OccurrencesSkipped)}


@pytest.mark.parametrize("overlap", list(Overlap))
@pytest.mark.parametrize("catch_up", list(CatchUp))
def test_every_policy_leaves_a_log_that_passes(overlap: Overlap, catch_up: CatchUp) -> None:
    log = ScheduleLog().create(overlap=overlap, catch_up=catch_up, buffer_max=2, catch_up_window_ms=5 * MINUTE)
    for step_ms in (MINUTE, MINUTE, 7 * MINUTE, 3 * HOUR, 30_000, 30_000):
        log.later(step_ms)
        unfinished = [
            each.job_id
            for each in log.events(OccurrenceFired)
            if (state := log.state(each.job_id)) is not None and not state.status.is_terminal
        ]
        if unfinished:
            log.run(unfinished[0]).later(0)
    log.command(BackfillSchedule, from_ms=START_MS - HOUR, until_ms=START_MS - HOUR + 3 * MINUTE).later(0)
    log.command(DeleteSchedule)

    assert audited(log).findings == ()


def life_by_a_wrong_clock() -> ScheduleLog:
    """The clock goes two hours ahead, something is fired, and it is set right."""
    log = ScheduleLog().create(overlap=Overlap.ALLOW_ALL).later(MINUTE).set_clock(2 * HOUR).later(MINUTE)
    log.command(SubmitJob, spec=JobSpec(job_id="delayed", name="work", delay_ms=5 * MINUTE))
    log.command(SubmitJob, spec=JobSpec(job_id="at-once", name="work"))
    log.set_clock(-2 * HOUR).later(0)
    for _ in range(6):
        log.later(MINUTE)
    return log.later(2 * HOUR).run("delayed").run("at-once")


def test_a_clock_that_was_ahead_and_was_set_back_leaves_a_log_that_passes() -> None:
    log = life_by_a_wrong_clock()

    report = audited(log)

    assert report.findings == ()
    assert report.events["ScheduleRewound"] == 1
    assert report.events["JobRescheduled"] == 1


def test_a_job_that_waited_for_nothing_may_start_before_the_time_that_a_clock_which_was_ahead_gave_it() -> None:
    log = ScheduleLog().set_clock(2 * HOUR).command(SubmitJob, spec=JobSpec(job_id="at-once", name="work"))

    log.set_clock(-2 * HOUR).run("at-once")

    assert audited(log).findings == ()


def test_an_update_that_keeps_the_timing_passes_with_what_waits_across_it() -> None:
    log = ScheduleLog().create(overlap=Overlap.BUFFER_ALL).later(MINUTE).later(MINUTE)

    log.command(UpdateSchedule, spec=definition(overlap=Overlap.BUFFER_ALL, note="another"))
    for _ in range(2):
        log.run(log.events(OccurrenceFired)[-1].job_id).later(1_000)

    assert audited(log).findings == ()
    assert len(log.events(OccurrenceFired)) == 2


def _lose_a_fire(log: ScheduleLog) -> None:
    fired = log.events(OccurrenceFired)[1]
    log.edit(OccurrenceFired, 1, nominal_ms=fired.nominal_ms + MINUTE, job_id="report@2027-01-15T08:03:00Z")


FAULTS: list[tuple[str, Callable[[ScheduleLog], None], Check]] = [
    ("an event is missing", lambda log: log.drop(OccurrenceFired, 1), Check.REVISION_GAP),
    ("another occurrence was fired than planned", _lose_a_fire, Check.LEDGER),
    ("a job of another time", lambda log: log.edit(OccurrenceFired, 1, job_id="report@x"), Check.LEDGER),
    ("a count that is not the plan's", lambda log: log.edit(OccurrencesSkipped, count=99), Check.LEDGER),
    ("another timing, not planned anew", lambda log: log.edit(ScheduleUpdated, plans_anew=False), Check.LEDGER),
    ("a wrong version", lambda log: log.edit(OccurrenceFired, 0, version=7), Check.LEDGER),
    ("fired before its time", lambda log: log.edit(OccurrenceFired, 0, decided_at_ms=START_MS + 5), Check.LEDGER),
    ("a schedule that was never created", lambda log: log.drop(ScheduleCreated), Check.ORPHAN_EVENT),
    ("resumed without a pause", lambda log: log.drop(SchedulePaused), Check.ILLEGAL_TRANSITION),
    (
        "a cause that is not there",
        lambda log: log.edit(ScheduleResumed, cause=Cause(source=CauseSource.COMMANDS, partition=0, offset=999)),
        Check.CAUSE_ABSENT,
    ),
    (
        "a cause that is about something else",
        lambda log: log.edit(InstanceEnded, cause=Cause(source=CauseSource.FOLLOWUPS, partition=0, offset=0)),
        Check.CAUSE_FOREIGN,
    ),
    (
        "an input that was decided twice",
        lambda log: log.edit(SchedulePaused, cause=Cause(source=CauseSource.COMMANDS, partition=0, offset=0)),
        Check.DECIDED_TWICE,
    ),
    ("a row that is not the fold", lambda log: log.edit_row(runs=77), Check.TABLE_DIFFERS),
]


@pytest.mark.parametrize(("damage", "check"), [each[1:] for each in FAULTS], ids=[each[0] for each in FAULTS])
def test_a_fault_is_found(damage: Callable[[ScheduleLog], None], check: Check) -> None:
    log = life()
    damage(log)

    assert check in {each.check for each in audited(log).findings}


CLOCK_FAULTS: list[tuple[str, Callable[[ScheduleLog], None], Check]] = [
    ("rewound too far", lambda log: log.edit(ScheduleRewound, to_ms=START_MS), Check.LEDGER),
    (
        "rewound by a clock that was right",
        lambda log: log.edit(ScheduleRewound, decided_at_ms=START_MS + 3 * HOUR),
        Check.LEDGER,
    ),
    ("rewound to where it was not", lambda log: log.edit(ScheduleRewound, from_ms=START_MS), Check.ILLEGAL_TRANSITION),
    (
        "a delay that was cut off",
        lambda log: log.edit(JobSubmitted, 2, spec=_at(log, "delayed")),
        Check.ILLEGAL_TRANSITION,
    ),
    (
        "a delay that was made longer",
        lambda log: log.edit(JobRescheduled, due_at_ms=START_MS + DAY),
        Check.ILLEGAL_TRANSITION,
    ),
    (
        "an instant that was not waited for",
        lambda log: log.edit(JobRescheduled, due_at_ms=START_MS + 4 * HOUR),
        Check.STARTED_EARLY,
    ),
]


@dataclass(slots=True)
class BusyLog:
    """A live log of a schedule that changes whenever somebody has read its row and comes to its events."""

    written: ScheduleLog
    damage: Callable[[ScheduleLog], None] = lambda _: None
    rows_end: int | None = None
    """Where the rows end for ever, if they do."""
    pace_ms: int = MINUTE
    is_live: bool = True

    @property
    def topology(self) -> Topology:
        return self.written.topology

    def spans(self, topics: Sequence[Topic]) -> dict[tuple[str, int], Span]:
        if self.topology.events in topics:
            self.damage(self.written.later(self.pace_ms))
        found = self.written.log.spans(topics)
        rows = (self.topology.scheduler_changelog.name, 0)
        if self.rows_end is not None and rows in found:
            found[rows] = Span(start=0, end=self.rows_end)
        return found

    def read(self, topic: Topic, partition: int, span: Span) -> Iterator[Sequence[Raw]]:
        return self.written.log.read(topic, partition, span)

    def at_time(self, topic: Topic, time_ms: int) -> dict[int, int | None]:
        return self.written.log.at_time(topic, time_ms)


def steer(log: ScheduleLog) -> None:
    """The schedule changes, and no job does."""
    log.command(PauseSchedule, note="again").command(ResumeSchedule)


def test_a_schedule_that_changes_faster_than_it_is_read_passes() -> None:
    log = life()

    report = verify(BusyLog(log, damage=steer, pace_ms=1), log.codec)

    assert report.ok, [str(finding) for finding in report.findings]


def test_a_row_that_is_not_the_fold_is_found_though_the_schedule_changes_faster_than_it_is_read() -> None:
    log = life()

    report = verify(BusyLog(log, damage=lambda log: log.edit_row(runs=77)), log.codec)

    assert [finding.check for finding in report.findings] == [Check.TABLE_DIFFERS]
    assert "runs is 77" in report.findings[0].detail


def test_a_row_that_has_stopped_following_its_events_is_found() -> None:
    # given one that is paused and resumed again and again, so that no job changes
    log = ScheduleLog().create()
    changelog = log.topology.scheduler_changelog
    end = log.log.spans([changelog])[changelog.name, 0].end

    report = verify(BusyLog(log, damage=steer, rows_end=end, pace_ms=1), log.codec)

    assert [finding.check for finding in report.findings] == [Check.TABLE_DIFFERS]
    assert "and its events are at" in report.findings[0].detail


def _at(log: ScheduleLog, job_id: str) -> JobSpec:
    return JobSpec(job_id=job_id, name="work", run_at_ms=log.now_ms)


@pytest.mark.parametrize(
    ("damage", "check"), [each[1:] for each in CLOCK_FAULTS], ids=[each[0] for each in CLOCK_FAULTS]
)
def test_a_fault_under_a_wrong_clock_is_found(damage: Callable[[ScheduleLog], None], check: Check) -> None:
    log = life_by_a_wrong_clock()
    damage(log)

    assert check in {each.check for each in audited(log).findings}


def test_a_schedule_and_a_job_of_the_same_name_are_two() -> None:
    log = life().command(SubmitJob, spec=JobSpec(job_id="report", name="work"))

    log.command(PauseSchedule).command(PauseSchedule).run("report")

    report = audited(log)
    assert report.findings == ()
    assert (report.events["JobSubmitted"], report.events["ScheduleCommandRejected"]) == (
        report.events["OccurrenceFired"] + 1,
        1,
    )


def test_the_history_of_a_schedule_tells_what_was_asked_and_decided_and_what_its_instances_told() -> None:
    log = ScheduleLog().create().later(MINUTE)
    log.run(log.events(OccurrenceFired)[-1].job_id).command(PauseSchedule)

    told = [each.type for each in history(log.log, log.codec, "report")]

    assert told == [
        "CreateSchedule",
        "ScheduleCreated",
        "OccurrenceFired",
        "InstanceFinished",
        "InstanceEnded",
        "PauseSchedule",
        "SchedulePaused",
    ]


def test_the_state_at_a_time_counts_jobs_and_passes_schedules_over() -> None:
    log = life()

    assert state_at(log.log, log.codec, log.now_ms).jobs == len(log.events(OccurrenceFired))
