"""What makes a projector alive, and a scheduler alive and ready."""

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

from mainspring.cli.roles import (
    LOOP_READY_MAX_AGE_S,
    LOST_MAX_S,
    PROJECTOR_LOOP_MAX_AGE_S,
    projector_health,
    scheduler_health,
)
from mainspring.processors.projector import Projector, ProjectorStatus
from mainspring.processors.scheduler import Scheduler, SchedulerStatus
from mainspring.telemetry.health import Health, Probe


def health_of(loop_age_s: float) -> Health:
    status = ProjectorStatus(running=True, events=0, unreadable=0, batches=0, loop_age_s=loop_age_s, partitions=())
    health = Health()
    projector_health(health, cast(Projector, SimpleNamespace(status=lambda: status)))
    return health


def test_a_projector_whose_loop_comes_round_is_alive_though_it_has_nothing_to_fold() -> None:
    assert health_of(loop_age_s=10.0).report(Probe.LIVE).ok


def test_a_projector_whose_loop_hangs_is_not_alive_though_its_process_runs() -> None:
    report = health_of(loop_age_s=PROJECTOR_LOOP_MAX_AGE_S + 1).report(Probe.LIVE)

    assert not report.ok
    assert "has not come round for 181 s" in str(report.as_json())


@dataclass(frozen=True)
class Held:
    """A scheduler that owns a partition and was last round its loop some seconds ago."""

    age_s: float
    lost_s: float = 0.0

    def status(self) -> SchedulerStatus:
        return SchedulerStatus(
            slot="s",
            owned=(0,),
            ready=(0,),
            restoring=(),
            last_loop_ms=time.monotonic_ns() // 1_000_000 - round(1_000 * self.age_s),
            last_commit_ms=None,
            transactions=1,
            restarts=0,
            has_joined=True,
            lost_s=self.lost_s,
        )


def scheduler_of(age_s: float, lost_s: float = 0.0) -> Health:
    health = Health()
    scheduler_health(health, cast(Scheduler, Held(age_s, lost_s)))
    return health


def test_a_scheduler_that_the_brokers_do_not_let_end_its_transaction_is_alive_and_says_that_it_waits_for_them() -> None:
    health = scheduler_of(LOOP_READY_MAX_AGE_S + 5)

    assert health.report(Probe.LIVE).ok
    assert "waits for the brokers" in health.report(Probe.READY).checks["partitions"]


def test_a_scheduler_that_has_nothing_to_do_and_no_broker_to_talk_to_is_alive_and_not_ready() -> None:
    health = scheduler_of(1.0, LOST_MAX_S + 1)

    assert health.report(Probe.LIVE).ok
    assert "none has been connected for 16 s" in health.report(Probe.READY).checks["partitions"]


def test_a_scheduler_whose_loop_comes_round_is_ready() -> None:
    assert scheduler_of(1.0).report(Probe.READY).ok
