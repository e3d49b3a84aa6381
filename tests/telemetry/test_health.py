"""Alive, ready, started: what each probe answers and why."""

from mainspring.telemetry import Health, Probe


def test_a_process_without_checks_is_alive_ready_and_started() -> None:
    assert all(Health().report(probe).ok for probe in Probe)


def test_a_process_that_is_not_alive_is_not_ready_either() -> None:
    health = Health()
    health.live("scheduler loop", lambda: "has not come round for 6 s")

    assert not health.report(Probe.LIVE).ok
    assert health.report(Probe.READY).checks == {"scheduler loop": "has not come round for 6 s"}


def test_a_check_of_readiness_leaves_liveness_alone() -> None:
    health = Health()
    health.ready("kafka", lambda: "no broker answers")

    assert health.report(Probe.LIVE).ok
    assert health.report(Probe.READY).as_json() == {
        "probe": "ready",
        "status": "failing",
        "checks": {"kafka": "no broker answers"},
    }


def test_a_check_that_raises_fails_with_its_error() -> None:
    health = Health()
    health.startup("restore", lambda: str(1 // 0))

    assert health.report(Probe.STARTUP).checks == {
        "restore": "check failed: ZeroDivisionError: integer division or modulo by zero"
    }
