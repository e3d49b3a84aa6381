"""The long form of the Chronos run, for `make chronos`: pytest finds it only where it is named.

200 schedules and 5,000 targets on three brokers, through rounds of kills and pauses of every role, then a quiet end.
"""

from pathlib import Path

import pytest

from mainspring.local import EmbeddedKafka
from tests.proof.chronos import Chronos
from tests.proof.site import Member, Site, a_site
from tests.support.proofs import Report

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(1_800)]

SCHEDULES, TARGETS, BROKERS = 200, 5_000, 3
BETWEEN = 150
"""Fires between two faults."""
SLOTS = 64
"""Enough that two workers keep up alone, and with what has gathered when the third is away."""
LEASE_MS = 6_000
COPIES = {
    "topics": {"replication": 3, "min_isr": 2},
    "worker": {"lease_ms": LEASE_MS, "heartbeat_ms": LEASE_MS // 4},
}
EVERY_MS = (5_000, 7_000, 10_000, 12_000, 15_000, 20_000)
CRON_S = (5, 10, 15, 20)


def test_two_hundred_schedules_miss_none_of_five_thousand_targets(tmp_path: Path, report: Report) -> None:
    with (
        EmbeddedKafka(BROKERS, heap="384m") as brokers,
        a_site(brokers.bootstrap, "chronos.", tmp_path, COPIES) as site,
    ):
        projector = site.projector()
        schedulers = [site.held_scheduler(name) for name in ("s1", "s2")]
        workers = [site.worker(name, slots=SLOTS) for name in ("w1", "w2", "w3")]
        chronos = Chronos(
            site=site, count=SCHEDULES, every_ms=EVERY_MS, cron_s=CRON_S, window_ms=60_000, nap_s=(0.0, 0.5, 1.5, 3.0)
        )
        chronos.begin()

        # when
        rounds = 0
        while chronos.fired < TARGETS:
            one_round(chronos, brokers, schedulers, workers, projector, rounds)
            rounds += 1
        quiet_since_ms = chronos.be_quiet(1)
        chronos.finish()

        # then
        assert chronos.with_transaction_open == 2 * rounds
        assert chronos.with_attempts_running == 2 * rounds
        verdict = chronos.assert_nothing_was_missed_or_fired_twice()
        chronos.assert_the_log_agrees()
        late_ms = verdict.lateness_ms()
        quiet_ms = [run.begun_ms - target.due_ms for target, run in verdict.met if target.due_ms >= quiet_since_ms]
        report(
            f"{SCHEDULES} schedules, {len(verdict.met)} targets, {rounds} rounds of kill -9 of a scheduler, a worker, "
            f"the projector and a broker and of pauses of a scheduler and a worker: 0 missed, {len(verdict.extra)} "
            f"side effects repeated; late by {late_ms[len(late_ms) // 2]:.0f} ms p50, {late_ms[-1]:.0f} ms at most, "
            f"{max(quiet_ms):.0f} ms at the end"
        )


def one_round(
    chronos: Chronos,
    brokers: EmbeddedKafka,
    schedulers: list[Member],
    workers: list[Member],
    projector: Member,
    number: int,
) -> None:
    """Each role dies once and stands still once, with some fires in between; a broker is gone for some of them."""
    site: Site = chronos.site
    chronos.more(BETWEEN)
    victim = schedulers[number % 2]
    chronos.hold(victim, number)
    victim.kill()
    victim.start()

    chronos.more(BETWEEN)
    victim, _ = chronos.stop_while_running(workers)
    victim.kill()
    victim.start()
    projector.kill()
    projector.start()

    chronos.more(BETWEEN)
    broker = number % BROKERS + 1
    brokers.kill(broker)
    chronos.more(BETWEEN)
    brokers.restart(broker)

    chronos.more(BETWEEN)
    chronos.be_away(schedulers[(number + 1) % 2], number)

    chronos.more(BETWEEN)
    paused, running = chronos.stop_while_running(workers)
    site.until(lambda: chronos.are_elsewhere(running), f"what {paused.name} ran to be started elsewhere")
    paused.go_on()
