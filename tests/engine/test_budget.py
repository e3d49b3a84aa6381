"""What one transaction may decide: bounded in bytes and time, in order, and what is left comes first the next time."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.core import IsOver
from mainspring.processors.engine.batch import Batch, Slice
from mainspring.processors.engine.budget import Budget
from mainspring.processors.engine.errors import RecordError
from mainspring.processors.engine.options import EngineOptions
from mainspring.processors.engine.pace import Pace
from mainspring.processors.engine.partition import Barrier, Partition
from mainspring.processors.engine.processing import Processing
from mainspring.processors.engine.transactor import Outcome
from tests.core.spec import Partition as CorePartition
from tests.engine.fake_record import FakeRecord

MAX_BYTES, MAX_MS = 1_000, 100


@dataclass(frozen=True)
class Fake(FakeRecord):
    """A record as it was read, and what it costs to decide on."""

    decides: int = 0
    takes_ms: int = 0
    fails: bool = False


@dataclass
class FakeClock:
    """Time that passes only by what is decided."""

    at_ms: int = 0

    def wall_ms(self) -> int:
        return self.at_ms

    def mono_ms(self) -> int:
        return self.at_ms

    def pause(self, delay_ms: int) -> None:
        self.at_ms += delay_ms


@dataclass
class FakeRules:
    """The rules of a partition that note what they were given."""

    clock: FakeClock
    staged: list[Any] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    condemned: list[Any] = field(default_factory=list)
    barriers: int = 0
    due: list[int] = field(default_factory=list)
    """What time has brought: how long each of it takes."""
    counter = 0
    clock_ms = 0

    def apply(self, topic: str, records: Sequence[Any], now: object) -> int:
        for record in records:
            self.clock.at_ms += record.takes_ms
            if record.fails:
                raise RecordError(record, "it fails")
            self.staged.append(record)
        return sum(record.decides for record in records)

    def condemn(self, record: Any, detail: str, now: object, *, close: bool) -> None:
        self.staged.append(record)
        self.condemned.append(record)

    def tick(self, now: object, is_over: IsOver) -> None:
        while self.due and not is_over():
            self.clock.at_ms += self.due.pop()

    def next_tick_in_ms(self, now: object) -> int | None:
        return 0 if self.due else None

    def wants_barrier(self, now: object) -> bool:
        return False

    def barrier_passed(self, asked_at: object, now: object) -> None:
        self.barriers += 1

    def has_decided(self) -> bool:
        return bool(self.staged)

    def changes(self) -> list[Any]:
        return []

    def index_changes(self) -> list[Any]:
        return []

    def committed(self) -> None:
        self.kept += self.staged
        self.staged = []

    def rolled_back(self, now: object) -> None:
        self.staged = []
        self.condemned = []


@dataclass
class FakeTransactor:
    """Commits everything, unless told otherwise, and notes the offsets."""

    marks: list[dict[Any, int]] = field(default_factory=list)
    outcome: Outcome = Outcome.COMMITTED
    transactional_id = "t"

    def run(self, write: object, marks: Any, group: object) -> tuple[Outcome, None]:
        self.marks.append({place: mark.offset for place, mark in marks.items()})
        return self.outcome, None

    def noted(self) -> dict[Any, int]:
        return {("changelog", number): 0 for number in range(4)}


class Site:
    """A `Processing` over partitions whose rules are fakes, and everything else as well."""

    def __init__(self, partitions: int = 1) -> None:
        self.clock = FakeClock()
        self.transactor = FakeTransactor()
        self.rules = [FakeRules(self.clock) for _ in range(partitions)]
        inputs = ("followups", "attempts", "commands")
        self.partitions = {
            number: Partition(
                number=number,
                places=[(topic, number) for topic in inputs],
                program=rules,  # type: ignore[arg-type]  # the part of it that is called
                table=SimpleNamespace(write=lambda *_: None),
                position={(topic, number): 0 for topic in inputs},
                committed={(topic, number): 0 for topic in inputs},
            )
            for number, rules in enumerate(self.rules)
        }
        program = SimpleNamespace(changelog="changelog", barrier_topic="attempts", encode_position=lambda _: (b"", b""))
        ownership = SimpleNamespace(partitions=self.partitions, ready=lambda: list(self.partitions.values()))
        inputs_port = SimpleNamespace(group=None, start=lambda _: None)
        context = SimpleNamespace(program=program, inputs=inputs_port, admin=None)
        self.processing = Processing(
            ownership=ownership,  # type: ignore[arg-type]  # the part of it that is called
            context=context,  # type: ignore[arg-type]  # the part of it that is called
            transactor=self.transactor,  # type: ignore[arg-type]  # the part of it that is called
            clock=self.clock,
            pace=Pace(interval_ms=0, burst=1),
            options=EngineOptions(max_decided_bytes=MAX_BYTES, max_decide_ms=MAX_MS),
            first_txn_id=1,
        )

    def asked_for_the_end_of_attempts(self, end: int) -> "Site":
        """The rules of partition 0 wait for all that was written to `attempts`, and the broker says how much it is."""
        answer: Future[dict[tuple[str, int], int]] = Future()
        answer.set_result({("attempts", 0): end})
        self.partitions[0].barrier = Barrier(asked_at=SimpleNamespace(), answer=answer)  # type: ignore[arg-type]  # unused
        return self

    def all_of(self, batch: Batch) -> list[Batch]:
        """Batch after batch until nothing is left; returns what was left each time."""
        left = []
        while batch:
            batch = self.processing.process(batch)
            left.append(batch)
        return left


def batch_of(*places: list[Any]) -> Batch:
    return [Slice(topic=records[0].topic(), partition=records[0].partition(), records=records) for records in places]


def commands(count: int, partition: int = 0, **cost: Any) -> list[Any]:
    return [Fake(("commands", partition), at, **cost) for at in range(count)]


def offsets(batch: Batch) -> list[tuple[int, int]]:
    return [(each.partition, record.offset()) for each in batch for record in each.records]


def test_a_batch_within_its_budget_is_one_transaction() -> None:
    site = Site()

    assert site.processing.process(batch_of(commands(4_000))) == []

    assert [marks["commands", 0] for marks in site.transactor.marks] == [4_000]


@pytest.mark.parametrize("cost", [{"decides": MAX_BYTES // 2}, {"takes_ms": MAX_MS // 2}], ids=["bytes", "time"])
def test_a_batch_is_cut_where_its_budget_is_spent_and_what_is_decided_is_committed_with_its_offsets(
    cost: dict[str, int],
) -> None:
    site = Site()

    left = site.processing.process(batch_of(commands(5, **cost)))

    assert offsets(left) == [(0, 2), (0, 3), (0, 4)]
    assert site.transactor.marks == [{("commands", 0): 2, ("attempts", 0): 0, ("followups", 0): 0}]
    site.all_of(left)
    assert [marks["commands", 0] for marks in site.transactor.marks] == [2, 4, 5]
    assert [record.offset() for record in site.rules[0].kept] == list(range(5))


def test_a_record_that_is_too_much_alone_is_decided_alone() -> None:
    site = Site()

    site.all_of(batch_of(commands(3, decides=50 * MAX_BYTES)))

    assert [marks["commands", 0] for marks in site.transactor.marks] == [1, 2, 3]


def test_partitions_take_turns_so_that_one_that_is_expensive_does_not_keep_the_others_waiting() -> None:
    site = Site(partitions=2)
    dear, cheap = commands(10, takes_ms=MAX_MS), commands(10, partition=1)

    left = site.all_of(batch_of(dear, cheap))

    assert len(site.rules[1].kept) == 10
    assert (1, 0) not in offsets(left[1])


def test_what_time_brings_is_bounded_in_time_and_each_partition_has_its_share() -> None:
    site = Site(partitions=2)
    for rules in site.rules:
        rules.due = [MAX_MS // 10] * 20

    site.processing.process([])

    assert [len(rules.due) for rules in site.rules] == [15, 15]
    site.processing.process(batch_of(commands(3, takes_ms=MAX_MS)))
    assert [len(rules.due) for rules in site.rules] == [10, 10], "whatever the inputs took"


def test_that_one_place_was_cheap_makes_nobody_careless_with_the_next() -> None:
    site = Site()
    followups: list[Any] = [Fake(("followups", 0), at) for at in range(100)]

    site.processing.process(batch_of(followups, commands(20, decides=MAX_BYTES)))

    assert site.transactor.marks == [{("commands", 0): 1, ("attempts", 0): 0, ("followups", 0): 100}]


def test_no_record_after_one_that_waits_is_decided_before_it_while_poison_is_searched_for() -> None:
    site = Site()
    records = commands(12, decides=MAX_BYTES // 3)
    records[7] = Fake(("commands", 0), 7, fails=True)

    site.all_of(batch_of(records))

    assert [record.offset() for record in site.rules[0].kept] == list(range(12))
    assert site.rules[0].condemned == [records[7]]


def test_an_end_that_reading_has_met_is_not_passed_while_records_before_it_wait() -> None:
    site = Site().asked_for_the_end_of_attempts(6)
    site.partitions[0].reached["attempts", 0] = 6
    reports: list[Any] = [Fake(("attempts", 0), at, takes_ms=MAX_MS) for at in range(2)]

    left = site.processing.process(batch_of(reports))
    passed_early = site.rules[0].barriers
    site.processing.process(left)

    assert (passed_early, site.rules[0].barriers) == (0, 1)


def test_an_end_that_was_met_before_an_abort_is_not_passed_until_what_came_before_it_was_decided_again() -> None:
    # Given a batch up to the end of a place, whose transaction is aborted
    site = Site()
    reports = batch_of([Fake(("attempts", 0), at) for at in range(5)])
    site.partitions[0].reached["attempts", 0] = 6
    site.transactor.outcome = Outcome.ABORTED
    site.processing.process(reports)

    # When time goes on, before the records have come once more, although the end has not moved
    site.asked_for_the_end_of_attempts(6)
    site.processing.rewound.clear()
    site.processing.process([])
    passed_early = site.rules[0].barriers
    site.transactor.outcome = Outcome.COMMITTED
    site.partitions[0].reached["attempts", 0] = 6
    site.processing.process(reports)

    assert (passed_early, site.rules[0].barriers) == (0, 1)


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1]), st.integers(0, 2 * MAX_BYTES), st.integers(0, 2 * MAX_MS), st.booleans()),
        max_size=60,
    )
)
def test_everything_is_decided_once_and_in_order_whatever_it_costs(costs: list[tuple[int, int, int, bool]]) -> None:
    site = Site(partitions=2)
    by_place: dict[int, list[Any]] = {0: [], 1: []}
    for number, decides, takes_ms, fails in costs:
        at = len(by_place[number])
        by_place[number].append(Fake(("commands", number), at, decides, takes_ms, fails))

    left = site.all_of(batch_of(*(records for records in by_place.values() if records)))

    for number, records in by_place.items():
        assert site.rules[number].kept == records
    sizes = [sum(len(each.records) for each in batch) for batch in left]
    assert sizes == sorted(set(sizes), reverse=True), "each turn decides something"


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 30)), min_size=1, max_size=80))
def test_expensive_records_are_taken_one_by_one_and_cheap_ones_together(costs: list[tuple[int, int]]) -> None:
    clock = FakeClock()
    budget = Budget(clock, MAX_BYTES, MAX_MS)
    decided_bytes = 0
    for per_record_bytes, per_record_ms in costs:
        before, step = budget.step, budget.step
        clock.at_ms += per_record_ms * step
        decided_bytes += per_record_bytes * step
        budget.spend(per_record_bytes * step)

        assert budget.is_spent == (decided_bytes >= MAX_BYTES or clock.at_ms >= MAX_MS)
        assert 1 <= budget.step <= min(2 * before, 16)
        if per_record_bytes == per_record_ms == 0:
            assert budget.step == min(2 * before, 16)


def test_copies_of_specifications_count_and_what_grows_with_the_inputs_does_not() -> None:
    # Given a finished job of a large payload
    partition = CorePartition().submit(payload=b"x" * 100_000)
    assert partition.core.decided_bytes == 0
    partition.start().succeed()
    before = partition.core.decided_bytes

    # When it is asked for again, in a few bytes
    partition.retry("again")

    assert 100_000 <= partition.core.decided_bytes - before <= 102_000


def test_offers_and_renewals_of_large_payloads_are_bounded_in_bytes_and_none_is_forgotten() -> None:
    # Given more jobs than fit, and a window for all of them
    partition = CorePartition()
    partition.core._dispatcher._room_bytes = 1_000_000
    partition.core._indexes.queue("default").window.size = 100.0
    for number in range(25):
        partition.submit(f"job-{number}", payload=b"x" * 100_000)

    def rounds() -> list[int]:
        sizes = []
        while len(partition.dispatch().last.offers):
            sizes.append(len(partition.last.offers))
        return sizes

    assert rounds() == [10, 10, 5]

    # And when nobody has answered, their renewals are, too
    partition.later(1_000)
    renewed = rounds()
    assert sum(renewed) == 25
    assert max(renewed) <= 16
    assert {offer.job_id for offer in partition.offers[25:]} == {f"job-{number}" for number in range(25)}
