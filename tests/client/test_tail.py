"""The reader of `events`: on demand, forwards only, over many partitions, for whoever lives."""

from __future__ import annotations

import gc

import pytest

from mainspring.client import Client, ClientConfig, Submission
from mainspring.client import tail as tail_module
from mainspring.client.watch import Start, Watch
from mainspring.jobs.options import JobOptions
from mainspring.topics import partition_for
from tests.client.fake_scheduler import FakeScheduler
from tests.support.waiting import eventually

pytestmark = pytest.mark.broker
LONG_S = 30.0


def ids_on_every_partition(partitions: int, each: int) -> list[str]:
    """Job ids, `each` for every partition."""
    found: dict[int, list[str]] = {partition: [] for partition in range(partitions)}
    number = 0
    while any(len(ids) < each for ids in found.values()):
        name = f"job-{number}"
        ids = found[partition_for(name.encode(), partitions)]
        if len(ids) < each:
            ids.append(name)
        number += 1
    return [name for ids in found.values() for name in ids]


def test_jobs_on_every_partition_are_told_apart(client: Client, scheduler: FakeScheduler) -> None:
    # given
    ids = ids_on_every_partition(4, 25)

    # when
    handles = client.submit_many(Submission("ok", {"id": name}, JobOptions(job_id=name)) for name in ids)

    # then
    assert [handle.result(LONG_S) for handle in handles] == [{"id": name} for name in ids]


def test_nothing_is_read_before_someone_waits_nor_after_the_last_one_has_gone(
    client: Client, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given
    monkeypatch.setattr(tail_module, "LINGER_S", 0.1)
    monkeypatch.setattr(tail_module, "CHECK_S", 0.05)
    tail = client._core.wire.tail
    handle = client.submit("ok", {"n": 1})
    assert not tail.running

    # when
    handle.result(LONG_S)

    # then
    eventually(lambda: not tail.running)
    assert client.submit("ok", {"n": 2}).result(LONG_S) == {"n": 2}


def test_a_handle_that_was_made_before_a_pause_misses_nothing(
    client: Client, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given: the tail has stopped between the verdict and the end
    monkeypatch.setattr(tail_module, "LINGER_S", 0.1)
    monkeypatch.setattr(tail_module, "CHECK_S", 0.05)
    handle = client.submit("hang")
    handle.accepted(LONG_S)
    eventually(lambda: not client._core.wire.tail.running)

    # when
    scheduler.finish(handle.job_id, "late")

    # then
    assert handle.result(LONG_S) == "late"


def test_a_handle_from_far_behind_is_caught_up_without_holding_others_up(
    client: Client, scheduler: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given: nothing is taken along, so that the old handle has to be read for apart
    monkeypatch.setattr(tail_module, "LOOK_BACK", 0)
    ids = iter(ids_on_every_partition(4, 40)[:40])  # all on one partition
    old = client.submit("ok", {"n": "old"}, job_id=next(ids))
    eventually(lambda: old.job_id in scheduler.jobs)
    client._core.wire.ends._known = None
    for _ in range(30):
        client.submit("ok", job_id=next(ids)).result(LONG_S)

    # then
    assert old.result(LONG_S) == {"n": "old"}


def test_dropped_handles_cost_nothing(client: Client, scheduler: FakeScheduler) -> None:
    # given
    client.submit("ok").result(LONG_S)
    tail = client._core.wire.tail

    # when
    handles = client.submit_many(Submission("ok") for _ in range(1000))
    alive = sum(len(known.alive()) for known in tail._watches.values())
    del handles
    client._core.wire.last.clear()
    gc.collect()

    # then
    assert alive >= 1000
    assert sum(len(known.alive()) for known in tail._watches.values()) == 0


def test_events_that_come_while_the_past_is_scanned_are_kept_in_order(config: ClientConfig) -> None:
    # given: a watch that must scan; the tail is already far ahead
    with Client(config=config) as client:
        tail = client._core.wire.tail
        watch = Watch("a", 0, Start(offset=5), None)
        tail.register(watch, fresh=False)
        tail._reading[0] = tail_module._Reading(100)

        # when
        assert tail.join(watch)
        assert tail.join(watch), "a second waiter scans as well"
        tail.absorb(watch, [], 120)

        # then
        assert watch.joined
        assert watch.kept is None
        assert not tail.join(watch)
        tail._reading.clear()


def test_a_handle_in_a_forked_child_says_what_is_wrong(config: ClientConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    # given
    from mainspring.client import ForkedClientError

    with Client(config=config) as client:
        handle = client.submit("ok")
        made_in = client._core.wire._pid

        # when: as in a child
        with monkeypatch.context() as child:
            child.setattr("os.getpid", lambda: made_in + 1)
            for ask in (lambda: client.submit("ok"), handle.status, handle.result, lambda: client.get("a")):
                with pytest.raises(ForkedClientError) as caught:
                    ask()
                assert caught.value.made_in == made_in
            client.close()

        # then: the parent's client still works
        assert client.submit("ok").job_id
