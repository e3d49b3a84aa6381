"""Lanes deeper than their room in memory: what comes up, comes back and is withdrawn is as in one without a store."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.processors.core import Rules
from mainspring.processors.core.index.lanes import LaneStore
from mainspring.processors.core.ready import ReadyJob, ReadyQueue
from mainspring.schemas.codes import DeclineReason
from mainspring.schemas.common import JobStatus
from tests.core.spec import Partition
from tests.support.index_store import DictStore

Step = tuple[str, int]

steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("submit"), st.integers(0, 9)),
    st.tuples(st.just("submit a herd"), st.integers(0, 9)),
    st.tuples(st.just("offer"), st.integers(1, 12)),
    st.tuples(st.just("decline"), st.integers(0, 100)),
    st.tuples(st.just("decline all"), st.just(0)),
    st.tuples(st.just("withdraw"), st.integers(0, 100)),
)


class Lane:
    """A lane with a store, and what must be in it."""

    def __init__(self, room: int) -> None:
        self.queue = ReadyQueue({}, LaneStore(DictStore(), room))
        self.waiting: set[ReadyJob] = set()
        self.offered: list[ReadyJob] = []
        self.submitted = 0

    def do(self, act: str, value: int) -> None:
        match act:
            case "submit":
                self.submit(value)
            case "submit a herd":
                for _ in range(12):
                    self.submit(value)
            case "offer":
                for _ in range(value):
                    self.offer()
            case "decline" if self.offered:
                self.add(self.offered.pop(value % len(self.offered)))
            case "decline all":
                while self.offered:
                    self.add(self.offered.pop())
            case "withdraw" if self.waiting:
                job = sorted(self.waiting)[value % len(self.waiting)]
                assert self.queue.discard(job)
                self.waiting.remove(job)

    def submit(self, key: int) -> None:
        self.add(ReadyJob((key,), self.submitted, f"job-{self.submitted}", 0, ""))
        self.submitted += 1

    def add(self, job: ReadyJob) -> None:
        self.queue.add(job)
        self.waiting.add(job)

    def offer(self) -> None:
        job = self.queue.pop()
        assert job == (min(self.waiting) if self.waiting else None)
        if job is not None:
            self.waiting.remove(job)
            self.offered.append(job)


@given(st.lists(steps, max_size=60), st.sampled_from([1, 2, 4, 7]))
@settings(max_examples=500, deadline=None)
def test_a_lane_with_a_store_gives_out_what_one_without_would(script: list[Step], room: int) -> None:
    lane = Lane(room)

    for act, value in script:
        lane.do(act, value)
        assert len(lane.queue) == len(lane.waiting)

    assert list(iter(lane.queue.pop, None)) == sorted(lane.waiting)
    assert len(lane.queue) == 0


@pytest.mark.parametrize("seed", range(8))
def test_a_herd_of_which_much_is_declined_starts_to_the_last_job(seed: int) -> None:
    # given a herd, of which a few have room in memory
    random = Random(seed)
    partition = Partition(Rules(window_start=16, window_max=16), index=DictStore(), window_jobs=16)
    unborn = [f"job-{number}" for number in range(400)]
    for _ in range(200):
        partition.submit(unborn.pop())

    # when of what is offered about half is declined, the rest runs, and more comes in meanwhile
    while offers := [offer.record.job_id for offer in partition.later(350).tick().dispatch().last.offers]:
        for job_id in offers:
            if random.random() < 0.5:
                partition.decline(job_id, reason=DeclineReason.DRAINING)
            else:
                partition.claim(job_id).succeed(job_id)
        for _ in range(min(len(unborn), random.randrange(30))):
            partition.submit(unborn.pop())

    # then none is left behind
    assert {state.status for state in partition.rows.states.values()} == {JobStatus.COMPLETED}
    assert len(partition.rows.states) + len(unborn) == 400
    assert partition.core.stats()["default"].ready == 0
