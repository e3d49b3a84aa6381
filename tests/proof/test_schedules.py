"""Recurring schedules through kills and a pause, short: every planned time has its run, and one job."""

from pathlib import Path

import pytest

from tests.proof.chronos import Chronos
from tests.proof.site import a_site
from tests.support.proofs import Report

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(180)]

LEASE_MS = 4_000


def test_schedules_miss_nothing_through_kills_and_a_pause(
    kafka: str, prefix: str, tmp_path: Path, report: Report
) -> None:
    changes = {"worker": {"lease_ms": LEASE_MS, "heartbeat_ms": LEASE_MS // 4}}
    with a_site(kafka, prefix, tmp_path, changes) as site:
        projector = site.projector()
        schedulers = [site.held_scheduler(name) for name in ("s1", "s2")]
        workers = [site.worker(name) for name in ("w1", "w2")]
        chronos = Chronos(site=site)
        chronos.begin()

        # when each dies, or stands still, at a moment that was seen to be bad
        chronos.more(40)
        chronos.hold(schedulers[0], 0)
        schedulers[0].kill()
        schedulers[0].start()
        chronos.more(40)
        victim, _ = chronos.stop_while_running(workers)
        victim.kill()
        victim.start()
        projector.kill()
        projector.start()
        chronos.more(40)
        chronos.be_away(schedulers[1], 1)
        quiet_since_ms = chronos.be_quiet(1)
        chronos.finish()

        # then
        assert (chronos.with_transaction_open, chronos.with_attempts_running) == (2, 1)
        verdict = chronos.assert_nothing_was_missed_or_fired_twice()
        chronos.assert_the_log_agrees()
        late_ms = verdict.lateness_ms()
        quiet_ms = [run.begun_ms - target.due_ms for target, run in verdict.met if target.due_ms >= quiet_since_ms]
        report(
            f"{chronos.count} schedules, {len(verdict.met)} targets, kill -9 of a scheduler, a worker and the "
            f"projector, a pause of a scheduler: 0 missed, {len(verdict.extra)} side effects repeated; late by "
            f"{late_ms[len(late_ms) // 2]:.0f} ms p50, {late_ms[-1]:.0f} ms at most, {max(quiet_ms):.0f} ms at the end"
        )
