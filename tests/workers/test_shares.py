"""Who reads what: workers of a group share each lane of a queue, whichever order they come in, and see all of it."""

from collections import Counter
from contextlib import ExitStack, closing
from functools import partial

import pytest
from confluent_kafka import Producer

from mainspring.schemas.common import Priority
from mainspring.topics import Connection, Topology, admin
from mainspring.workers.inbox import DuplicateWorkerError, OfferInbox

pytestmark = pytest.mark.broker

WORKERS, PARTITIONS = 3, 6
TURNS = 600


def test_workers_that_join_one_after_another_share_every_lane_evenly(kafka: str, prefix: str) -> None:
    # Given the work topics of a queue
    topology = Topology(prefix=prefix, partitions=1, work_partitions=PARTITIONS)
    connection = Connection(kafka)
    admin.apply(connection, topology)
    fair = Counter({topology.work("default", lane).name: PARTITIONS // WORKERS for lane in Priority})

    # When workers join, each after the one before has its share
    with ExitStack() as stack:
        inboxes: list[OfferInbox] = []
        for _ in range(WORKERS):
            inboxes.append(stack.enter_context(closing(OfferInbox(connection, topology, ["default"]))))
            _poll_until_all_is_shared(inboxes, total=4 * PARTITIONS)

        # Then each has as many partitions of each lane as any other
        assert [Counter(topic for topic, _ in inbox.assigned) for inbox in inboxes] == WORKERS * [fair]


def test_a_worker_that_keeps_its_identity_comes_back_in_its_place_and_the_others_go_on(kafka: str, prefix: str) -> None:
    # Given two workers with identities that have shared the partitions
    topology = Topology(prefix=prefix, partitions=1, work_partitions=PARTITIONS)
    connection = Connection(kafka)
    admin.apply(connection, topology)
    with ExitStack() as stack:
        join = partial(OfferInbox, connection, topology, ["default"])
        stays, leaves = (stack.enter_context(closing(join(instance_id=name))) for name in ("stays", "leaves"))
        _poll_until_all_is_shared([stays, leaves], total=4 * PARTITIONS)
        before = stays.assigned, leaves.assigned

        # When one of them is gone and comes back, which to the group is as if it were killed: it does not say goodbye
        leaves.close()
        back = stack.enter_context(closing(join(instance_id="leaves")))
        held: set[frozenset[tuple[str, int]]] = set()
        for _ in range(TURNS):
            stays.read(0.05)
            held.add(stays.assigned)
            back.read(0.05)
            if back.partitions:
                break

        # Then it has the same offers again, and the other was never without its own
        assert (stays.assigned, back.assigned) == before
        assert held == {stays.assigned}


def test_a_worker_whose_identity_another_has_taken_ends_and_says_so(kafka: str, prefix: str) -> None:
    # Given a worker with an identity
    topology = Topology(prefix=prefix, partitions=1, work_partitions=PARTITIONS)
    connection = Connection(kafka)
    admin.apply(connection, topology)
    with ExitStack() as stack:
        join = partial(OfferInbox, connection, topology, ["default"], instance_id="w-0")
        first = stack.enter_context(closing(join()))
        _poll_until_all_is_shared([first], total=4 * PARTITIONS)

        # When another one joins under the same
        second = stack.enter_context(closing(join()))

        # Then the first reads no more, and tells why
        def both_read() -> None:
            for _ in range(TURNS):
                second.read(0.05)
                first.read(0.05)

        with pytest.raises(DuplicateWorkerError, match="another worker runs as 'w-0'"):
            both_read()


def test_offers_behind_the_open_transaction_of_a_dead_scheduler_are_seen(kafka: str, prefix: str) -> None:
    # Given a scheduler that died in the middle of a transaction, with an offer in it
    topology = Topology(prefix=prefix, partitions=1, work_partitions=1)
    connection = Connection(kafka)
    admin.apply(connection, topology)
    lane = topology.work("default", Priority.MEDIUM).name
    options = {"transactional.id": topology.transactional_id("dead"), "transaction.timeout.ms": 60_000}
    dead = Producer(connection.producer_config(**options))
    dead.init_transactions(10)
    dead.begin_transaction()
    dead.produce(lane, b"of the dead", b"job", 0)
    assert dead.flush(10) == 0

    # When another one offers something behind it
    alive = Producer(connection.producer_config(**{"transactional.id": topology.transactional_id("alive")}))
    alive.init_transactions(10)
    alive.begin_transaction()
    alive.produce(lane, b"of the living", b"job", 0)
    alive.commit_transaction(10)

    # Then a worker reads that while the transaction is still open
    with closing(OfferInbox(connection, topology, ["default"])) as inbox:
        seen: list[bytes] = []
        for _ in range(TURNS):
            seen += [message.value() for message in inbox.read(0.05)]
            if b"of the living" in seen:
                break
    dead.abort_transaction(10)
    assert seen == [b"of the dead", b"of the living"]


def _poll_until_all_is_shared(inboxes: list[OfferInbox], total: int) -> None:
    for _ in range(TURNS):
        for inbox in inboxes:
            inbox.read(0.05)
        if all(inbox.partitions for inbox in inboxes) and sum(inbox.partitions for inbox in inboxes) == total:
            return
    pytest.fail(f"after {TURNS} turns the partitions are {[inbox.partitions for inbox in inboxes]}")
