"""Who reads what: the workers of a group share each lane of a queue, whichever order they come in."""

from collections import Counter
from contextlib import ExitStack, closing

import pytest

from mainspring.schemas.common import Priority
from mainspring.topics import Connection, Topology, admin
from mainspring.workers.inbox import OfferInbox

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


def _poll_until_all_is_shared(inboxes: list[OfferInbox], total: int) -> None:
    for _ in range(TURNS):
        for inbox in inboxes:
            inbox.read(0.05)
        if all(inbox.partitions for inbox in inboxes) and sum(inbox.partitions for inbox in inboxes) == total:
            return
    pytest.fail(f"after {TURNS} turns the partitions are {[inbox.partitions for inbox in inboxes]}")
