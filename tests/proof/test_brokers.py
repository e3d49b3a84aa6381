"""Brokers that end, short: the leader of the busiest partition, then a coordinator of transactions, under load."""

import signal
from pathlib import Path

import pytest

from mainspring.local import EmbeddedKafka
from tests.proof.bounces import an_installation
from tests.proof.cluster import NODES
from tests.support.proofs import Report

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]


def test_brokers_that_lead_and_coordinate_end_under_load_and_nothing_is_lost(tmp_path: Path, report: Report) -> None:
    with (
        EmbeddedKafka(NODES, heap="384m") as brokers,
        an_installation(brokers, tmp_path, schedules=12, audits=False) as bounces,
    ):
        # when
        bounces.bounce("the leader of the busiest partition", bounces.leader, signal.SIGKILL)
        bounces.bounce("the coordinator of transactions", bounces.transaction_coordinator, signal.SIGTERM)

        # then
        bounces.finish()
        report(bounces.summary())
