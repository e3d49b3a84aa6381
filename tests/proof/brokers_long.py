"""The long form of what is done to brokers, for `make brokers`: pytest finds it only where it is named."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from mainspring.local import EmbeddedKafka
from tests.proof.bounces import Bounces, an_installation
from tests.proof.cluster import NODES, SmallDisk, small_disk
from tests.support.proofs import Report

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(3_600)]

CHASES = 5
"""Bounces that follow the leader, of each kind."""
DOWN_S, PAUSE_S = 30.0, 15.0
SMALL, SMALL_SIZE = 3, "256m"
"""Which broker has a disk of its own, where this process may mount one."""


def test_whatever_is_done_to_brokers_nothing_is_lost_and_no_schedule_misses_a_time(
    tmp_path: Path, report: Report
) -> None:
    data = tmp_path / "brokers"
    with (
        small_disk(data, SMALL, SMALL_SIZE) as disk,
        EmbeddedKafka(NODES, data_dir=data, heap="384m") as brokers,
        an_installation(brokers, tmp_path / "site", schedules=16) as bounces,
    ):
        # when
        for how in (signal.SIGKILL, signal.SIGTERM):
            chase(bounces, how)
        stall(bounces, disk)

        # then
        bounces.finish()
        report(bounces.summary())


def chase(bounces: Bounces, how: signal.Signals) -> None:
    """Follows the leader of the busiest partition from broker to broker, then what coordinates."""
    steps: list[tuple[str, Callable[[], int | None]]] = [
        *[("the leader of the busiest partition", bounces.leader)] * CHASES,
        ("the coordinator of the owner's transactions", bounces.transaction_coordinator),
        ("the coordinator of the schedulers' group", bounces.group_coordinator),
    ]
    for what, find in steps:
        bounces.bounce(what, find, how)


def stall(bounces: Bounces, disk: SmallDisk | None) -> None:
    """A broker that stands still, disks that are full, and two of three away."""
    bounces.pause("the leader of the busiest partition", bounces.leader, PAUSE_S)
    bounces.no_growth("the leader of the busiest partition", bounces.leader)
    if disk is None:
        bounces.told.append("no disk was filled: nobody but root may mount one")
    else:
        bounces.disk_full(SMALL, disk)
    bounces.two_down(bounces.leader, DOWN_S)
