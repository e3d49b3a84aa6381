"""What makes a projector alive."""

from types import SimpleNamespace
from typing import cast

from mainspring.cli.roles import PROJECTOR_LOOP_MAX_AGE_S, projector_health
from mainspring.processors.projector import Projector, ProjectorStatus
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
