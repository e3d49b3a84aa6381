"""Alive, ready, started: what each probe answers and why."""

import pytest

from mainspring.telemetry import Health, Loop, Probe


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_process_without_checks_is_alive_ready_and_started() -> None:
    assert all(Health().report(probe).ok for probe in Probe)


def test_a_loop_that_does_not_come_round_is_neither_alive_nor_ready_and_the_reason_says_for_how_long(
    clock: Clock,
) -> None:
    health = Health(clock)
    loop = health.loop("scheduler", max_age_s=5)

    clock.now += 5
    assert health.report(Probe.LIVE).ok
    clock.now += 1
    report = health.report(Probe.LIVE)

    assert not report.ok
    assert report.checks == {"scheduler loop": "has not come round for 6.0 s (allowed: 5 s)"}
    assert not health.report(Probe.READY).ok
    loop.beat()
    assert health.report(Probe.LIVE).ok


def test_a_loop_that_turns_but_gets_nothing_done_is_alive_but_not_ready(clock: Clock) -> None:
    health = Health(clock)
    loop = health.loop("worker", max_age_s=5, max_stall_s=30)

    loop.working()
    for _ in range(31):
        clock.now += 1
        loop.beat()
        loop.working()

    assert health.report(Probe.LIVE).ok
    ready = health.report(Probe.READY)
    assert not ready.ok
    assert ready.checks["worker progress"] == "alive, but nothing done for 31.0 s although there is work"
    loop.progress()
    assert health.report(Probe.READY).ok


def test_an_idle_loop_is_not_taken_for_a_stalled_one(clock: Clock) -> None:
    loop = Loop("worker", clock)

    clock.now += 3600

    assert loop.stalled_s == 0


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
