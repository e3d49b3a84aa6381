"""A partition with room for a few jobs in memory decides what one with room for all decides."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.processors.core import (
    AgingPriorityStrategy,
    EarliestDeadlineFirstStrategy,
    PriorityStrategy,
    QueueRules,
    Rules,
)
from mainspring.schemas.codes import DeclineReason
from mainspring.schemas.common import JobStatus, Priority
from tests.core.spec import NOON, Partition
from tests.support.index_store import DictStore

RULES = Rules(
    queues={
        "default": QueueRules(strategy=PriorityStrategy(), tenant_weights={"a": 2.0}),
        "aging": QueueRules(strategy=AgingPriorityStrategy(0.5)),
        "edf": QueueRules(strategy=EarliestDeadlineFirstStrategy()),
    },
    partitions=1,
    window_start=2,
    window_max=8,
    lease_ms=5_000,
    unknown_name_after_ms=20_000,
    history_max_count=10**6,
)

NAMES = tuple(f"job-{number}" for number in range(24))
names = st.sampled_from(NAMES)
submits = st.fixed_dictionaries(
    {
        "delay_ms": st.sampled_from([None, 0, 1, 40, 900, 900, 30_000]),
        "queue": st.sampled_from(["default", "default", "aging", "edf"]),
        "priority": st.sampled_from(Priority),
        "tenant": st.sampled_from("ab"),
        "deadline_ms": st.sampled_from([None, NOON + 10_000, NOON + 20_000]),
        "start_deadline_ms": st.sampled_from([None, None, NOON + 1_500, NOON + 60_000]),
        "max_retries": st.integers(0, 2),
    }
)
Step = tuple[str, str, Any]
steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("submit"), names, submits),
    st.tuples(st.just("submit"), names, submits),
    st.tuples(st.just("cancel"), names, st.none()),
    st.tuples(st.just("reschedule"), names, st.sampled_from([-1_000, 0, 50, 900])),
    st.tuples(st.just("later"), st.just(""), st.sampled_from([1, 50, 1_000, 10_000])),
    st.tuples(st.just("dispatch"), st.just(""), st.integers(1, 9)),
    st.tuples(st.just("claim"), st.just(""), st.none()),
    st.tuples(st.just("succeed"), st.just(""), st.none()),
    st.tuples(st.just("fail"), st.just(""), st.none()),
    st.tuples(st.just("decline"), st.just(""), st.sampled_from(DeclineReason)),
)


@dataclass(slots=True)
class Pair:
    """Two partitions that are told the same."""

    roomy: Partition = field(default_factory=lambda: Partition(RULES))
    tight: Partition = field(default_factory=lambda: Partition(RULES, index=DictStore(), window_jobs=1))

    def take(self, step: str, name: str, given: Any) -> None:
        for each in (self.roomy, self.tight):
            _apply(each, step, name, given)
        assert self.tight.last == self.roomy.last

    def compare(self) -> None:
        roomy, tight = self.roomy, self.tight
        assert tight.rows.states == roomy.rows.states
        assert (tight.core.waiting, tight.core.terminal) == (roomy.core.waiting, roomy.core.terminal)
        assert tight.core.stats() == roomy.core.stats()
        assert tight.core.wake_at() == roomy.core.wake_at()


def _apply(partition: Partition, step: str, name: str, given: Any) -> None:
    """What is to be claimed or reported is the first that can be: both partitions agree on which that is."""
    states = sorted(partition.rows.states.values(), key=lambda state: state.seq)
    match step:
        case "submit":
            partition.submit(name, **given)
        case "cancel":
            partition.cancel(name)
        case "reschedule":
            partition.reschedule(partition.now.wall_ms + given, name)
        case "later":
            partition.later(given).tick()
        case "dispatch":
            partition.dispatch(given)
        case "claim" | "decline":
            offered = next((state.job_id for state in states if state.dispatch.offered_attempt), None)
            if offered is not None:
                partition.claim(offered) if step == "claim" else partition.decline(offered, reason=given)
        case _:
            running = next((state.job_id for state in states if state.status is JobStatus.RUNNING), None)
            if running is not None:
                partition.succeed(running) if step == "succeed" else partition.fail(running, retry_delay_ms=given)


@settings(max_examples=300, deadline=None)
@given(taken=st.lists(steps, max_size=90))
def test_a_small_window_decides_the_same_for_the_same_inputs(taken: list[Step]) -> None:
    pair = Pair()
    for step in taken:
        pair.take(*step)
    pair.compare()
    for _ in range(3 * len(NAMES)):
        for verb, argument in (("later", 60_000), ("dispatch", 9), ("claim", None), ("succeed", None)):
            pair.take(verb, "", argument)
    pair.compare()


@settings(max_examples=100, deadline=None)
@given(taken=st.lists(steps, max_size=60), more=st.lists(steps, max_size=30))
def test_a_later_owner_of_the_store_decides_what_one_decides_that_reads_every_row(
    taken: list[Step], more: list[Step]
) -> None:
    pair = Pair()
    for step in taken:
        pair.take(*step)
    pair.roomy.taken_over().tick()
    # Another owner moves what is due again, from the beginning.
    pair.tight.taken_over().tick()
    pair.compare()
    for step in more:
        pair.take(*step)
    pair.compare()
