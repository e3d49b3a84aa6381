"""The partition against a dictionary: any order of commands, reports, time and takeovers keeps every promise."""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mainspring.processors.core import (
    AgingPriorityStrategy,
    FIFOStrategy,
    PriorityStrategy,
    QueueOrder,
    QueueRules,
    Rules,
)
from mainspring.processors.core.index.entries import (
    COUNTS_KEY,
    IN_FLIGHT_KEY,
    decode_counts,
    decode_ids,
    entries_of,
    is_in_flight,
)
from mainspring.processors.core.index.lanes import LANE_PREFIX
from mainspring.processors.core.job.evolve import NOT_OFFERED, fold
from mainspring.processors.core.job.transitions import TERMINAL
from mainspring.schemas.codes import DeclineReason
from mainspring.schemas.common import JobStatus, Priority
from mainspring.schemas.events import JobStarted
from mainspring.schemas.records import JobEvent
from mainspring.schemas.signals import StartConfirmed
from mainspring.schemas.tables import JobState
from tests.core.spec import Partition
from tests.support.index_store import DictStore

RULES = Rules(
    queues={
        "default": QueueRules(strategy=PriorityStrategy(), tenant_weights={"a": 2.0}),
        "fifo": QueueRules(strategy=FIFOStrategy()),
        "aging": QueueRules(strategy=AgingPriorityStrategy(1.0)),
    },
    window_start=2,
    window_max=4,
    lease_ms=5000,
    unknown_name_after_ms=20_000,
    history_max_count=10**6,
)

JOBS = ("j1", "j2", "j3", "j4", "j5")
jobs = st.sampled_from(JOBS)
workers = st.sampled_from(("w1", "w2"))
WAITING = {JobStatus.PENDING, JobStatus.RETRY_WAIT}


@dataclass
class Job:
    """What a dictionary says of a job."""

    status: JobStatus
    due_at_ms: int
    max_retries: int
    max_lost: int
    attempt: int = 0
    retries: int = 0
    lost: int = 0
    worker: str = ""
    cancelled: bool = False
    lease_ms: int = 0

    def end(self, status: JobStatus) -> None:
        """An attempt that did not succeed ends."""
        self.status = JobStatus.CANCELLED if self.cancelled else status


class PartitionMachine(RuleBasedStateMachine):
    """Drives a partition and a dictionary side by side."""

    @initialize()
    def begin(self) -> None:
        self.partition = self.made()
        self.model: dict[str, Job] = {}
        self.finished: dict[str, JobState] = {}
        self.checked = 0
        self.by_job: dict[str, list[JobEvent]] = {}
        self.confirmed: dict[tuple[str, int], str] = {}
        self.commands = 0

    def made(self) -> Partition:
        """The partition under test."""
        return Partition(RULES)

    def once(self, act: str, *args: Any, **options: Any) -> None:
        """Applies an input twice: the second time must change no row."""
        getattr(self.partition, act)(*args, **options)
        rows = dict(self.partition.rows.states)
        getattr(self.partition, act)(*args, **options)
        assert self.partition.rows.states == rows

    def command_id(self) -> str:
        self.commands += 1
        return f"c{self.commands}"

    # Users.

    @rule(
        job_id=jobs,
        delay_ms=st.sampled_from([None, 0, 1, 1500, 30_000]),
        max_retries=st.integers(0, 2),
        max_lost=st.integers(0, 1),
        queue=st.sampled_from(["default", "fifo", "aging", "nowhere"]),
        priority=st.sampled_from(Priority),
        tenant=st.sampled_from("ab"),
    )
    def submit(
        self, job_id: str, delay_ms: int | None, max_retries: int, max_lost: int, queue: str, **spec: Any
    ) -> None:
        self.once(
            "submit",
            job_id,
            self.command_id(),
            delay_ms=delay_ms,
            max_retries=max_retries,
            max_lost=max_lost,
            queue=queue,
            retry_base_delay_ms=1000,
            **spec,
        )
        if job_id not in self.model and queue != "nowhere":
            due_at_ms = self.partition.now.wall_ms + (delay_ms or 0)
            self.model[job_id] = Job(JobStatus.PENDING, due_at_ms, max_retries, max_lost)

    @rule(job_id=jobs)
    def cancel(self, job_id: str) -> None:
        self.once("cancel", job_id, self.command_id())
        job = self.model.get(job_id)
        if job is not None and job.status in WAITING:
            job.status = JobStatus.CANCELLED
        elif job is not None and job.status is JobStatus.RUNNING:
            job.cancelled = True

    @rule(job_id=jobs, ahead_ms=st.sampled_from([-1000, 0, 700, 50_000]))
    def reschedule(self, job_id: str, ahead_ms: int) -> None:
        run_at_ms = self.partition.now.wall_ms + ahead_ms
        self.once("reschedule", run_at_ms, job_id, self.command_id())
        job = self.model.get(job_id)
        if job is not None and job.status in WAITING:
            job.due_at_ms = max(self.partition.now.wall_ms, run_at_ms)

    # Workers, who may say anything at any time.

    @rule(job_id=jobs, attempt=st.integers(0, 4), worker=workers, free_slot=st.booleans())
    def claim_blindly(self, job_id: str, attempt: int, worker: str, free_slot: bool) -> None:
        self.claim(job_id, attempt, worker, free_slot)

    @rule(job_id=jobs, worker=workers, free_slot=st.booleans())
    def claim_what_is_offered(self, job_id: str, worker: str, free_slot: bool) -> None:
        state = self.partition.rows.states.get(job_id)
        if state is not None:
            self.claim(job_id, state.dispatch.offered_attempt, worker, free_slot)

    def claim(self, job_id: str, attempt: int, worker: str, free_slot: bool) -> None:
        before = self.partition.rows.states.get(job_id)
        offered = before is not None and before.dispatch.offered_attempt == attempt > 0
        self.once("claim", job_id, attempt, worker, free_slot=free_slot)
        if offered:
            job = self.model[job_id]
            job.status, job.attempt, job.worker = JobStatus.RUNNING, attempt, worker
            job.lease_ms = self.partition.now.mono_ms + RULES.lease_ms

    @rule(
        job_id=jobs,
        attempt=st.none() | st.integers(0, 3),
        worker=workers,
        report=st.sampled_from(["succeed", "fail", "time_out", "stopped", "release"]),
    )
    def report(self, job_id: str, attempt: int | None, worker: str, report: str) -> None:
        job = self.model.get(job_id)
        if attempt is None:
            attempt = job.attempt if job is not None else 1
        self.once(report, job_id, attempt, worker)
        if job is None or job.status is not JobStatus.RUNNING or (job.attempt, job.worker) != (attempt, worker):
            return
        if report == "succeed":
            job.status = JobStatus.COMPLETED
        elif report == "release":
            job.end(JobStatus.RETRY_WAIT)
        elif report == "stopped":
            self.lose(job)
        else:
            gone = JobStatus.FAILED if report == "fail" else JobStatus.TIMED_OUT
            again = job.retries < job.max_retries
            job.retries += again and not job.cancelled
            job.end(JobStatus.RETRY_WAIT if again else gone)
        self.take_due_time(job_id, job)

    def lose(self, job: Job) -> None:
        again = job.lost < job.max_lost
        job.lost += again and not job.cancelled
        job.end(JobStatus.RETRY_WAIT if again else JobStatus.FAILED)

    def take_due_time(self, job_id: str, job: Job) -> None:
        """The jitter of a retry is the core's own: any time from now to the cap will do."""
        if job.status is JobStatus.RETRY_WAIT:
            due_at_ms = self.partition.state(job_id).due_at_ms
            assert 0 <= due_at_ms - self.partition.now.wall_ms <= 4000
            job.due_at_ms = due_at_ms

    @rule(job_id=jobs, worker=workers, reason=st.sampled_from(DeclineReason))
    def decline(self, job_id: str, worker: str, reason: DeclineReason) -> None:
        state = self.partition.rows.states.get(job_id)
        self.once("decline", job_id, 1 if state is None else None, worker, reason)
        job = self.model.get(job_id)
        if job is not None and job.status in WAITING and self.partition.status(job_id) is JobStatus.CANCELLED:
            assert reason is DeclineReason.UNKNOWN_NAME
            job.status = JobStatus.CANCELLED

    @rule(worker=workers, held=st.lists(st.tuples(jobs, st.integers(0, 3)), max_size=4))
    def heartbeat(self, worker: str, held: list[tuple[str, int]]) -> None:
        self.once("heartbeat", *held, worker=worker)
        for job_id, attempt in held:
            job = self.model.get(job_id)
            if job is not None and job.status is JobStatus.RUNNING and (job.attempt, job.worker) == (attempt, worker):
                job.lease_ms = self.partition.now.mono_ms + RULES.lease_ms

    # Time, and the shell.

    @rule(ms=st.sampled_from([1, 250, 1000, 4000, 20_000]))
    def later(self, ms: int) -> None:
        self.partition.later(ms)

    @rule(room=st.integers(0, 3))
    def dispatch(self, room: int) -> None:
        wake = self.partition.core.wake_at()
        now = self.partition.now
        asleep = wake is None or (
            (wake.wall_ms is None or wake.wall_ms > now.wall_ms)
            and (wake.mono_ms is None or wake.mono_ms > now.mono_ms)
        )
        self.partition.dispatch(room)
        assert len(self.partition.last.offers) <= room + len(JOBS), "renewals are at most one per job"
        if asleep:
            assert self.partition.last.offers == []
            assert self.partition.last.events == []

    @rule(back_ms=st.sampled_from([0, 500, 6000]))
    def expire_leases(self, back_ms: int) -> None:
        asked_at = self.partition.now._replace(mono_ms=self.partition.now.mono_ms - back_ms)
        self.partition.lease_check(asked_at)
        for job_id, job in self.model.items():
            if job.status is JobStatus.RUNNING and job.lease_ms <= asked_at.mono_ms:
                self.lose(job)
                self.take_due_time(job_id, job)

    @rule()
    def take_over(self) -> None:
        self.partition.taken_over()
        for job in self.model.values():
            job.lease_ms = self.partition.now.mono_ms + RULES.lease_ms

    # What holds after every step.

    @invariant()
    def rows_are_what_the_dictionary_says(self) -> None:
        rows = self.partition.rows.states
        assert rows.keys() == self.model.keys() == self.partition.rows.specs.keys()
        for job_id, job in self.model.items():
            row = rows[job_id]
            assert (row.status, row.due_at_ms) == (job.status, job.due_at_ms)
            assert (row.attempt, row.retries, row.lost) == (job.attempt, job.retries, job.lost)

    @invariant()
    def rows_are_the_fold_of_the_events(self) -> None:
        for event in self.partition.events[self.checked :]:
            self.by_job.setdefault(event.job_id, []).append(event)
        self.checked = len(self.partition.events)
        for job_id, row in self.partition.rows.states.items():
            assert fold(self.by_job[job_id]) == replace(row, dispatch=NOT_OFFERED)

    @invariant()
    def terminal_is_final(self) -> None:
        for job_id, row in self.finished.items():
            assert self.partition.rows.states[job_id] == row
        for job_id, row in self.partition.rows.states.items():
            if row.status in TERMINAL:
                assert row.dispatch == NOT_OFFERED
                self.finished[job_id] = row

    @invariant()
    def attempts_are_contiguous_and_never_early(self) -> None:
        for events in self.by_job.values():
            started = [event for event in events if isinstance(event, JobStarted)]
            assert [event.attempt for event in started] == list(range(1, len(started) + 1))
            assert all(event.decided_at_ms >= event.due_at_ms for event in started)

    @invariant()
    def an_attempt_is_confirmed_to_one_incarnation_only(self) -> None:
        for signal in self.partition.signals:
            if isinstance(signal, StartConfirmed):
                for start in signal.starts:
                    holder = self.confirmed.setdefault((start.job_id, start.attempt), signal.incarnation)
                    assert holder == signal.incarnation
        self.partition.signals.clear()

    @invariant()
    def windows_count_what_the_rows_say(self) -> None:
        for name, stats in self.partition.core.stats().items():
            mine = [row for row in self.partition.rows.states.values() if row.queue == name]
            assert stats.offered == sum(1 for row in mine if row.dispatch.offered_attempt)
            assert stats.running == sum(1 for row in mine if row.status is JobStatus.RUNNING)
            assert 1 <= stats.window <= RULES.window_max

    @invariant()
    def every_job_is_in_exactly_one_index(self) -> None:
        core = self.partition.core
        rows = [*self.partition.rows.states.values()]
        flying = {row.job_id for row in rows if row.status is JobStatus.RUNNING or row.dispatch.offered_attempt}
        assert {*core._indexes.renewals, *core._indexes.leases} == flying
        waiting = sum(1 for row in rows if row.status in WAITING and row.job_id not in flying)
        assert core.waiting + sum(stats.ready for stats in core.stats().values()) == waiting
        assert core.terminal == sum(1 for row in rows if row.status in TERMINAL)
        for row in rows:
            if self.partition.index is None and row.status in WAITING and row.job_id not in flying:
                queue = core._indexes.queue(row.queue)
                job = queue.order.ready_job(row)
                assert core._indexes.waiting.holds(job) != (job.job_id in set(queue.ready))


class SmallWindowMachine(PartitionMachine):
    """The same with room for one job in memory: all that was said above holds, and the table is told all of it."""

    def made(self) -> Partition:
        return Partition(RULES, index=DictStore(), window_jobs=1)

    @invariant()
    def the_index_is_what_follows_from_the_rows(self) -> None:
        index = self.partition.index
        assert index is not None
        orders = {name: QueueOrder(name, queue) for name, queue in RULES.queues.items()}
        expected: dict[bytes, bytes] = {}
        for row in self.partition.rows.states.values():
            expected |= entries_of(row, orders.__getitem__)
        found = {key: value for key, value in index.rows.items() if not key.startswith(LANE_PREFIX)}
        counts, in_flight = found.pop(COUNTS_KEY, None), found.pop(IN_FLIGHT_KEY, None)
        assert found == expected
        counted = [sum(1 for key in found if key.startswith(prefix)) for prefix in (b"#w", b"#d", b"#h")]
        assert list(decode_counts(counts)) == counted
        flying = {row.job_id for row in self.partition.rows.states.values() if is_in_flight(row)}
        assert set(decode_ids(in_flight)) == flying


TestPartition = PartitionMachine.TestCase
TestPartition.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestSmallWindow = SmallWindowMachine.TestCase
TestSmallWindow.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
