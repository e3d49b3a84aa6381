"""The kit and a scheduler process: what the kit's scheduler was given, given to the real shell, makes the same events.

The shell reads encoded records, keeps staged rows and loads them from a table; its timers are its own, so a moment that
the kit slept through would show.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mainspring.client import CommandRejectedError
from mainspring.jobs import JobPriority, RetryPolicy
from mainspring.processors.core import Now, Rules
from mainspring.processors.core.job.evolve import evolve
from mainspring.processors.engine.tables.memory import MemoryTable
from mainspring.processors.scheduler.intake import IntakeContext
from mainspring.processors.scheduler.partition import SchedulerPartition
from mainspring.processors.scheduler.placement import WorkPlacement
from mainspring.schemas import Codec, JobEvent, Record
from mainspring.schemas.attempts import AttemptHeartbeat
from mainspring.schemas.codes import RetryReason
from mainspring.schemas.commands import SubmitJob
from mainspring.schemas.common import CauseSource
from mainspring.schemas.tables import Dispatch, JobState
from mainspring.testing import Mainspring
from mainspring.testing.kit import START
from mainspring.testing.scheduler import VirtualScheduler
from mainspring.topics import Topology
from tests.testing import mixed_jobs

CODEC = Codec.embedded()
TOPOLOGY = Topology(prefix="same.", partitions=1, work_partitions=1)
LEASE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Given:
    """A record that was applied."""

    now: Now
    record: Record
    source: CauseSource


@dataclass(frozen=True, slots=True)
class Ticked:
    """Timers were looked at, and so many jobs might be offered."""

    now: Now
    room: int


@dataclass(frozen=True, slots=True)
class Expired:
    """All reports had been read, and leases were ended."""

    now: Now


class RecordingScheduler(VirtualScheduler):
    """Keeps everything that moves the core."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.steps: list[Given | Ticked | Expired] = []
        super().__init__(*args, **kwargs)

    def apply(self, record: Record, source: CauseSource) -> None:
        self.steps.append(Given(self._clock.now, record, source))
        super().apply(record, source)

    def tick(self, room: int) -> bool:
        self.steps.append(Ticked(self._clock.now, room))
        return super().tick(room)

    def expire_leases(self) -> None:
        self.steps.append(Expired(self._clock.now))
        super().expire_leases()


@dataclass(frozen=True, slots=True)
class Message:
    """A record as it is read."""

    name: str
    at: int
    identity: bytes
    data: bytes

    def topic(self) -> str:
        return self.name

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes:
        return self.identity

    def value(self) -> bytes:
        return self.data


@dataclass
class Process:
    """The scheduler's program of one partition, driven by hand."""

    rules: Rules
    now: Now
    events: list[Any] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        context = IntakeContext(codec=CODEC, topology=TOPOLOGY, recorded_by="test")
        self.table = MemoryTable()
        self.program = SchedulerPartition(
            0,
            self.table,
            0,
            self.now,
            rules=self.rules,
            context=context,
            placement=WorkPlacement(TOPOLOGY),
            cache_rows=10,
        )

    def take(self, step: Given | Ticked | Expired) -> None:
        self._sleep_until(step.now)
        match step:
            case Given():
                self._read(step)
            case Ticked():
                self.program.core.tick(step.now)
                self.program.core.dispatch(step.now, step.room)
            case Expired():
                self.program.barrier_passed(step.now, step.now)
        self._commit()

    def states(self) -> dict[str, JobState]:
        rows = (CODEC.decode(data) for _, data in self.table.scan(b"J"))
        return {row.job_id: row for row in rows if isinstance(row, JobState)}

    def _sleep_until(self, now: Now) -> None:
        # Between inputs of one instant there is no sleep, and their order is the kit's.
        while self.now.wall_ms < now.wall_ms:
            wake = self.program.core.wake_at()
            if wake is None or wake.wall_ms is None or wake.wall_ms >= now.wall_ms:
                break
            passed_ms = max(0, wake.wall_ms - self.now.wall_ms)
            self.now = Now(self.now.wall_ms + passed_ms, self.now.mono_ms + passed_ms)
            self.program.core.tick(self.now)
            self._commit()
        self.now = now

    def _read(self, step: Given) -> None:
        names = {
            CauseSource.COMMANDS: TOPOLOGY.commands.name,
            CauseSource.FOLLOWUPS: TOPOLOGY.followups.name,
            CauseSource.ATTEMPTS: TOPOLOGY.attempts.name,
        }
        name, record = names[step.source], step.record
        key = record.spec.job_id if isinstance(record, SubmitJob) else getattr(record, "job_id", "")
        key = record.worker_id if isinstance(record, AttemptHeartbeat) else key
        offset = self.offsets[name] = self.offsets.get(name, -1) + 1
        self.program.apply(name, [Message(name, offset, key.encode(), CODEC.encode(record))], step.now)

    def _commit(self) -> None:
        if self.program.has_decided():
            output, forwarded = self.program.take()
            assert not forwarded.letters
            self.events += output.events
        self.table.write(self.program.changes(), 0, 0)
        self.program.committed()


JOBS = st.sampled_from(
    (
        mixed_jobs.adds.job(1, 2),
        mixed_jobs.shouts.job("x"),
        mixed_jobs.succeeds_in_the_end.job(2),
        mixed_jobs.fails_for_good.job(),
        mixed_jobs.comes_again_later.job(),
        mixed_jobs.takes_too_long.job(),
        mixed_jobs.blocks_too_long.job(),
        mixed_jobs.computes_too_long.job(),
        mixed_jobs.hangs.job(),
        mixed_jobs.lingers.job(15.0),
        mixed_jobs.lingers_in_a_thread.job(25.0),
        mixed_jobs.exits.job(),
    )
)
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "delay": st.integers(0, 30),
        "priority": st.sampled_from(JobPriority),
        "retry": st.builds(RetryPolicy, max_retries=st.integers(0, 3), base_delay=st.sampled_from((0.0, 0.5, 20.0))),
        "timeout": st.sampled_from((0.5, 7.0, 40.0)),
        "max_lost": st.integers(0, 2),
        "start_deadline": st.integers(1, 60).map(lambda seconds: START + timedelta(seconds=seconds)),
    },
)
SUBMIT = st.tuples(st.just("submit"), JOBS, TERMS)
NUMBER = st.integers(0, 30)
HURTS = st.sampled_from(("kill", "disconnect", "reconnect", "drain"))
ACTIONS = st.lists(
    st.one_of(
        SUBMIT,
        SUBMIT,
        st.tuples(st.just("refused"), JOBS),
        st.tuples(st.just("advance"), st.sampled_from((0.02, 1.0, 5.0, 11.0, 30.0))),
        st.tuples(st.just("advance"), st.floats(0, 4)),
        st.tuples(st.sampled_from(("cancel", "put off", "retry")), NUMBER),
        st.tuples(HURTS, NUMBER),
        st.just(("start",)),
    ),
    min_size=20,
    max_size=50,
)


def _act(kit: Mainspring, action: tuple[Any, ...]) -> None:
    verb, *rest = action
    if verb == "submit":
        kit.submit(rest[0], **rest[1])
    elif verb == "refused":
        kit.submit(rest[0], queue="unheard")
    elif verb == "advance":
        kit.advance(rest[0])
    elif verb == "start":
        kit.start_worker()
    elif verb in ("cancel", "put off", "retry"):
        _ask(kit, verb, rest[0])
    elif alive := [worker for worker in kit.workers if worker.is_alive]:
        worker = alive[rest[0] % len(alive)]
        {
            "kill": worker.kill,
            "disconnect": worker.disconnect,
            "reconnect": worker.reconnect,
            "drain": lambda: worker.drain("3s", wait=False),
        }[verb]()


def _ask(kit: Mainspring, verb: str, number: int) -> None:
    jobs = kit.jobs()
    job_id = jobs[number % len(jobs)].job_id if jobs else "nobody"
    if verb == "cancel":
        kit.cancel(job_id, wait=False)
        return
    with suppress(CommandRejectedError):  # a refusal is an event, and compared as such
        kit.reschedule(job_id, delay=number) if verb == "put off" else kit.retry(job_id)


def _compare(actions: list[tuple[Any, ...]], slots: int, workers: int) -> set[str]:
    """Compares the two; returns the kinds of events that there were, with their reasons."""
    # given
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mainspring.testing.simulation.VirtualScheduler", RecordingScheduler)
        with Mainspring(mixed_jobs.app, slots=slots, workers=workers, lease=LEASE) as kit:
            for action in actions:
                _act(kit, action)
            kit.advance("20m")
            recorded = kit._simulation.scheduler
            assert isinstance(recorded, RecordingScheduler)

    # when
    process = Process(recorded.rules, recorded.steps[0].now)
    for step in recorded.steps:
        process.take(step)

    # then
    assert recorded.events == process.events
    assert recorded.rows.states == process.states()
    folded: dict[str, JobState | None] = {}
    for event in recorded.events:
        assert isinstance(event, JobEvent)
        folded[event.job_id] = evolve(folded.get(event.job_id), event)
    assert {job_id: _plain(state) for job_id, state in folded.items() if state is not None} == {
        job_id: _plain(state) for job_id, state in recorded.rows.states.items()
    }
    return {f"{type(event).__name__} {getattr(event, 'reason', '')}".strip() for event in recorded.events}


def _plain(state: JobState) -> JobState:
    """Without the columns that no event carries."""
    return replace(state, dispatch=Dispatch())


def test_the_same_inputs_make_the_same_events_in_the_kit_and_in_a_scheduler_process() -> None:
    seen: set[str] = set()

    @given(actions=ACTIONS, slots=st.integers(1, 4), workers=st.integers(1, 3))
    @settings(
        max_examples=60,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],  # a whole scenario hardly shrinks, and takes long to try
        suppress_health_check=[HealthCheck.too_slow],
    )
    def compare(actions: list[tuple[Any, ...]], slots: int, workers: int) -> None:
        seen.update(_compare(actions, slots, workers))

    compare()

    # What was never seen was never compared.
    retries = {f"JobRetryScheduled {reason}" for reason in RetryReason}
    kinds = {"JobCompleted", "JobTimedOut", "JobCancelRequested", "JobRescheduled", "ReportRefused", "CommandRejected"}
    assert (retries | kinds) - seen == set()
