"""The ready queue: the strategy's order, tenants by weight, withdrawal for free."""

from collections import Counter
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.core.index.lanes import LaneStore
from mainspring.processors.core.ready import ReadyJob, ReadyQueue
from tests.support.index_store import DictStore

numbers = count()


def job(key: int, tenant: str = "", band: int = 0, seq: int | None = None) -> ReadyJob:
    seq = next(numbers) if seq is None else seq
    return ReadyJob((key,), seq, f"job-{seq}", band, tenant)


def drain(queue: ReadyQueue, limit: int = 1_000_000) -> list[ReadyJob]:
    taken: list[ReadyJob] = []
    while len(taken) < limit and (each := queue.pop()) is not None:
        taken.append(each)
    return taken


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=60), st.data())
def test_one_tenants_jobs_come_in_the_order_of_key_and_seq_whatever_was_withdrawn(
    specs: list[tuple[int, int]], data: st.DataObject
) -> None:
    jobs = [job(key * 10 + band, band=band) for key, band in specs]
    queue = ReadyQueue({})
    for each in jobs:
        queue.add(each)
    withdrawn = data.draw(st.sets(st.sampled_from(jobs))) if jobs else set()
    for each in withdrawn:
        assert queue.discard(each)
        assert not queue.discard(each)
    assert drain(queue) == sorted(set(jobs) - withdrawn)
    assert len(queue) == 0


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 9), st.sampled_from("abc"), st.integers(0, 1)),
            st.tuples(st.just("discard"), st.integers(0, 30), st.just(""), st.just(0)),
            st.tuples(st.just("pop"), st.just(0), st.just(""), st.just(0)),
        ),
        max_size=80,
    )
)
def test_each_tenants_jobs_come_in_order_and_none_is_lost_or_served_twice(
    steps: list[tuple[str, int, str, int]],
) -> None:
    queue = ReadyQueue({"a": 3.0})
    model: dict[str, ReadyJob] = {}
    for seq, (step, key, tenant, band) in enumerate(steps):
        if step == "add":
            each = job(key, tenant, band, seq)
            queue.add(each)
            model[each.job_id] = each
        elif step == "discard":
            absent = job(0, seq=key)
            assert queue.discard(model.get(f"job-{key}", absent)) == (model.pop(f"job-{key}", None) is not None)
        else:
            taken = queue.pop()
            assert (taken is None) == (not model)
            if taken is not None:
                assert model.pop(taken.job_id) == taken
                rivals = [other for other in model.values() if other[3:] == taken[3:]]
                assert all(taken < other for other in rivals)
        assert len(queue) == len(model)
    assert set(drain(queue)) == set(model.values())


def test_the_next_job_has_the_smallest_key_among_the_next_of_all_bands() -> None:
    queue = ReadyQueue({})
    for key, band in ((5, 0), (4, 1), (6, 1), (1, 2)):
        queue.add(job(key, band=band))
    assert [each.key for each in drain(queue)] == [(1,), (4,), (5,), (6,)]


def test_a_burst_of_one_tenant_does_not_bury_another() -> None:
    queue = ReadyQueue({})
    for _ in range(1000):
        queue.add(job(0, "burst"))
    for _ in range(3):
        queue.add(job(1, "quiet"))
    assert [each.tenant for each in drain(queue, 6)].count("quiet") == 3


def test_tenants_are_served_by_weight() -> None:
    queue = ReadyQueue({"big": 3.0, "small": 1.0})
    for _ in range(400):
        queue.add(job(0, "big"))
        queue.add(job(0, "small"))
    served = Counter(each.tenant for each in drain(queue, 200))
    assert abs(served["big"] - 150) <= 2


def test_a_tenant_that_was_away_has_saved_nothing_up_and_lost_nothing() -> None:
    queue = ReadyQueue({})
    for _ in range(500):
        queue.add(job(0, "steady"))
    drain(queue, 100)
    for _ in range(100):
        queue.add(job(0, "back"))
    served = Counter(each.tenant for each in drain(queue, 100))
    assert abs(served["back"] - 50) <= 1


def test_a_tenant_that_comes_in_drops_gets_no_more_than_its_share() -> None:
    queue = ReadyQueue({})
    for _ in range(500):
        queue.add(job(0, "steady"))
    served: Counter[str] = Counter()
    for _ in range(200):
        if not any(each.tenant == "drops" for each in queue._live.values()):
            queue.add(job(0, "drops"))
        (taken,) = drain(queue, 1)
        served[taken.tenant] += 1
    assert abs(served["drops"] - 100) <= 2


def test_weight_counts_inside_a_band_and_never_across() -> None:
    queue = ReadyQueue({"low": 100.0})
    queue.add(job(1, "low", band=1))
    queue.add(job(0, "high", band=0))
    assert [each.tenant for each in drain(queue)] == ["high", "low"]


def test_withdrawing_everything_leaves_nothing_behind() -> None:
    queue = ReadyQueue({})
    for number in range(5000):
        queue.add(job(0, f"tenant-{number % 50}", seq=number))
    for number in range(5000):
        queue.discard(job(0, f"tenant-{number % 50}", seq=number))
    assert queue.pop() is None
    band = queue._bands[0]
    assert (band._tenants, band._turns, band._tags) == ({}, [], {})


def test_a_job_that_was_parked_comes_back_to_its_place_at_the_end_of_what_is_in_memory() -> None:
    queue = ReadyQueue({}, LaneStore(DictStore(), 4))
    for number in range(8):
        queue.add(ReadyJob((number,), number, f"job-{number}", 0, "", 100))
    taken = [queue.pop() for _ in range(3)]
    for job in taken:
        assert job is not None
        queue.add(job._replace(at_ms=5_000))
    assert len(queue) == 8
    assert [job.job_id for job in iter(queue.pop, None)] == [f"job-{number}" for number in range(8)]
