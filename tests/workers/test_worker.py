"""The worker's loop on a real broker, against a scheduler that does as the test says."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mainspring.local import EmbeddedKafka
from mainspring.schemas.attempts import (
    AttemptCancelled,
    AttemptClaimed,
    AttemptFailed,
    AttemptHeartbeat,
    AttemptReleased,
    AttemptSucceeded,
    AttemptTimedOut,
    OfferDeclined,
)
from mainspring.schemas.common import Priority
from mainspring.schemas.dead_letters import DeadLetter
from mainspring.schemas.logs import LogCaptured
from mainspring.workers import Registry, Worker, WorkerConfig
from mainspring.workers.config import WorkerState
from tests.support import worker_jobs
from tests.support.fake_scheduler import CODEC, PATIENCE_S, FakeScheduler, fake_scheduler
from tests.support.waiting import eventually

pytestmark = pytest.mark.broker


@pytest.fixture
def scheduler(kafka: str, prefix: str) -> Iterator[FakeScheduler]:
    worker_jobs.gate.clear()
    with fake_scheduler(kafka, prefix) as fake:
        yield fake
    worker_jobs.gate.set()


def config_of(scheduler: FakeScheduler, **changes: Any) -> WorkerConfig:
    own = {"slots": 4, "lease_ms": 3_000, "heartbeat_ms": 500, "drain_ms": 5_000, "stall_ms": 0, **changes}
    return WorkerConfig(connection=scheduler.connection, topology=scheduler.topology, codec=CODEC, **own)


@contextmanager
def working(scheduler: FakeScheduler, **changes: Any) -> Iterator[Worker]:
    worker = Worker(config_of(scheduler, **changes), Registry(worker_jobs.app))
    stop = threading.Event()
    errors: list[BaseException] = []

    def live() -> None:
        try:
            worker.run(stop)
        except BaseException as error:
            errors.append(error)
            raise

    thread = threading.Thread(target=live)
    thread.start()
    try:
        yield worker
    finally:
        stop.set()
        worker_jobs.gate.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert errors == []
        assert worker.status().state is WorkerState.STOPPED


def test_an_offer_is_claimed_confirmed_run_and_reported(scheduler: FakeScheduler) -> None:
    with working(scheduler) as worker:
        scheduler.offer("a_echo", job_id="j", attempt=3, value=[1])
        claim = scheduler.wait(AttemptClaimed, "j")
        assert (claim.attempt, claim.free_slot, claim.worker_id) == (3, True, worker.worker_id)
        done = scheduler.wait(AttemptSucceeded, "j")
        assert (done.attempt, done.result, done.content_type) == (3, b"[1]", "application/json")
        assert done.incarnation == claim.incarnation == worker.incarnation
        assert claim.reported_at_ms <= done.started_at_ms <= done.reported_at_ms


def test_nothing_runs_before_its_claim_is_confirmed(scheduler: FakeScheduler) -> None:
    scheduler.answer = lambda claim: None
    with working(scheduler) as worker:
        scheduler.offer("a_echo", job_id="j")
        claim = scheduler.wait(AttemptClaimed, "j")
        assert worker.status().awaiting == 1
        assert scheduler.all(AttemptSucceeded) == []
        scheduler.confirm(claim)
        scheduler.wait(AttemptSucceeded, "j")


def test_a_refused_claim_frees_its_slot_and_never_runs(scheduler: FakeScheduler) -> None:
    scheduler.answer = lambda claim: claim.job_id != "loser"
    with working(scheduler, slots=1):
        scheduler.offer("a_echo", job_id="loser")
        scheduler.wait(AttemptClaimed, "loser")
        scheduler.offer("a_echo", job_id="winner")
        scheduler.wait(AttemptSucceeded, "winner")
        assert scheduler.all(AttemptSucceeded, "loser") == []


def test_a_repeated_offer_of_what_is_awaited_or_runs_is_ignored(scheduler: FakeScheduler) -> None:
    with working(scheduler):
        scheduler.offer("t_wait", job_id="j")
        scheduler.wait(AttemptClaimed, "j")
        for _ in range(5):
            scheduler.offer("t_wait", job_id="j")
        scheduler.wait(AttemptHeartbeat, "j")
        scheduler.offer("a_echo", job_id="after")
        scheduler.wait(AttemptSucceeded, "after")
        assert len(scheduler.all(AttemptClaimed, "j")) == 1


def test_a_full_worker_lets_a_freed_slot_take_the_held_offer(scheduler: FakeScheduler) -> None:
    with working(scheduler, slots=1, hold_ms=20_000) as worker:
        scheduler.offer("t_wait", job_id="long")
        scheduler.wait(AttemptHeartbeat, "long")
        scheduler.offer("a_echo", job_id="held")
        eventually(lambda: worker.status().held == 1)
        worker_jobs.gate.set()
        claim = scheduler.wait(AttemptClaimed, "held")
        assert not claim.free_slot
        scheduler.wait(AttemptSucceeded, "held")


def test_a_full_worker_declines_what_it_held_for_too_long(scheduler: FakeScheduler) -> None:
    with working(scheduler, slots=1):
        scheduler.offer("t_wait", job_id="long")
        scheduler.wait(AttemptHeartbeat, "long")
        began = time.monotonic()
        scheduler.offer("a_echo", job_id="held")
        assert scheduler.wait(OfferDeclined, "held").reason == "NO_SLOTS"
        assert time.monotonic() - began >= 0.3
        assert scheduler.all(AttemptClaimed, "held") == []


def test_an_unknown_name_is_declined_at_once(scheduler: FakeScheduler) -> None:
    with working(scheduler):
        scheduler.offer("not_deployed_yet", job_id="j")
        assert scheduler.wait(OfferDeclined, "j").reason == "UNKNOWN_NAME"


def test_every_lane_is_served(scheduler: FakeScheduler) -> None:
    with working(scheduler):
        for lane in Priority:
            scheduler.offer("a_echo", job_id=lane.name, lane=lane)
        for lane in Priority:
            scheduler.wait(AttemptSucceeded, lane.name)


def test_an_offer_much_older_than_any_renewal_is_skipped(scheduler: FakeScheduler) -> None:
    with working(scheduler):
        scheduler.offer("a_echo", job_id="first")
        scheduler.wait(AttemptSucceeded, "first")  # now the worker knows the scheduler's clock
        scheduler.offer("a_echo", job_id="stale", age_ms=400_000)
        scheduler.offer("a_echo", job_id="fresh")
        scheduler.offer("a_echo", job_id="fresh-2")
        scheduler.wait(AttemptSucceeded, "fresh")
        scheduler.wait(AttemptSucceeded, "fresh-2")
        assert scheduler.all(AttemptClaimed, "stale") == []


@pytest.mark.parametrize("model", ["a", "t", "p"])
def test_a_failure_is_reported_as_data(scheduler: FakeScheduler, model: str) -> None:
    with working(scheduler):
        scheduler.offer(f"{model}_raise", job_id="later", kind="later")
        failed = scheduler.wait(AttemptFailed, "later")
        assert (failed.retryable, failed.retry_delay_ms) == (True, 2500)
        scheduler.offer(f"{model}_raise", job_id="large", kind="large")
        failed = scheduler.wait(AttemptFailed, "large")
        assert (failed.retryable, failed.error.type) == (False, "mainspring.jobs.errors.ResultTooLargeError")


def test_a_killed_child_is_a_failed_attempt_that_may_be_retried(scheduler: FakeScheduler) -> None:
    with working(scheduler):
        for attempt in (1, 2):
            scheduler.offer("p_kill_self", job_id="j", attempt=attempt)
            failed = scheduler.wait(AttemptFailed, "j", count=attempt)
            assert failed.attempt == attempt
            assert failed.retryable
            assert failed.error.type.endswith("ProcessDiedError")
            assert "signal 9" in failed.error.message
        scheduler.offer("p_echo", job_id="ok", value=1)
        scheduler.wait(AttemptSucceeded, "ok")


@pytest.mark.parametrize("name", ["a_wait", "p_wait", "t_wait"])
def test_a_time_out_is_reported_as_one(scheduler: FakeScheduler, name: str) -> None:
    with working(scheduler):
        scheduler.offer(name, job_id="j", timeout_ms=300)
        timed_out = scheduler.wait(AttemptTimedOut, "j")
        assert timed_out.timeout_ms == 300
        assert 300 <= timed_out.reported_at_ms - timed_out.started_at_ms < 10_000


def test_a_thread_that_outlasts_its_time_out_keeps_its_slot_and_that_shows(scheduler: FakeScheduler) -> None:
    with working(scheduler, slots=1) as worker:
        scheduler.offer("t_wait", job_id="j", timeout_ms=100)
        scheduler.wait(AttemptTimedOut, "j")
        assert (worker.status().overdue, worker.status().busy) == (1, 1)
        scheduler.offer("a_echo", job_id="next")
        assert scheduler.wait(OfferDeclined, "next").reason == "NO_SLOTS"
        worker_jobs.gate.set()
        scheduler.offer("a_echo", job_id="after")
        scheduler.wait(AttemptSucceeded, "after")
        assert scheduler.all(AttemptSucceeded, "j") == [], "the late result is dropped"


@pytest.mark.parametrize("name", ["a_wait", "p_wait", "t_wait"])
def test_a_cancel_is_reported_as_one(scheduler: FakeScheduler, name: str) -> None:
    with working(scheduler):
        scheduler.offer(name, job_id="j")
        claim = scheduler.wait(AttemptClaimed, "j")
        scheduler.wait(AttemptHeartbeat, "j")
        scheduler.cancel(claim, "CANCEL_REQUESTED")
        cancelled = scheduler.wait(AttemptCancelled, "j")
        assert cancelled.started_at_ms is not None


def test_an_attempt_whose_lease_is_lost_is_stopped_and_given_back(scheduler: FakeScheduler) -> None:
    with working(scheduler):
        scheduler.offer("a_wait", job_id="j")
        claim = scheduler.wait(AttemptClaimed, "j")
        scheduler.wait(AttemptHeartbeat, "j")
        scheduler.cancel(claim, "LEASE_LOST")
        assert scheduler.wait(AttemptReleased, "j").reason == "LEASE_AT_RISK"


def test_heartbeats_name_what_runs_with_its_progress_on_the_jobs_partition(scheduler: FakeScheduler) -> None:
    with working(scheduler) as worker:
        scheduler.offer("t_report_and_wait", job_id="j")
        scheduler.wait(AttemptHeartbeat, "j", count=3)
        beat = scheduler.all(AttemptHeartbeat, "j")[-1]
        assert (beat.worker_id, beat.incarnation) == (worker.worker_id, worker.incarnation)
        [held] = [held for held in beat.attempts if held.job_id == "j"]
        assert (held.attempt, held.progress, held.note) == (1, 0.5, "half way")


def test_a_confirmation_that_comes_after_the_lease_is_not_run_but_released(scheduler: FakeScheduler) -> None:
    scheduler.answer = lambda claim: None
    with working(scheduler, lease_ms=900, heartbeat_ms=300) as worker:
        worker._beat_at = time.monotonic() + 3600  # its heartbeats are lost
        scheduler.offer("a_echo", job_id="j")
        claim = scheduler.wait(AttemptClaimed, "j")
        claimed_at = worker._holdings.attempts["j"].claimed_at
        eventually(lambda: time.monotonic() - claimed_at >= 0.9)
        scheduler.confirm(claim)
        assert scheduler.wait(AttemptReleased, "j").reason == "LEASE_AT_RISK"
        assert scheduler.all(AttemptSucceeded, "j") == []


def test_a_claim_without_an_answer_gives_its_slot_away_and_still_counts(scheduler: FakeScheduler) -> None:
    scheduler.answer = lambda claim: None if claim.job_id == "silent" else True
    with working(scheduler, slots=1, answer_ms=200, hold_ms=10_000):
        scheduler.offer("a_echo", job_id="silent")
        silent = scheduler.wait(AttemptClaimed, "silent")
        scheduler.offer("a_echo", job_id="other")
        scheduler.wait(AttemptSucceeded, "other")
        scheduler.wait(AttemptHeartbeat, "silent")
        scheduler.confirm(silent)
        scheduler.wait(AttemptSucceeded, "silent")


def test_a_claim_that_nobody_answers_for_long_is_dropped(scheduler: FakeScheduler) -> None:
    scheduler.answer = lambda claim: None
    with working(scheduler, answer_ms=100, give_up_ms=300) as worker:
        scheduler.offer("a_echo", job_id="j")
        assert scheduler.wait(AttemptReleased, "j").reason == "LEASE_AT_RISK"
        assert worker.status().awaiting == 0


def test_what_a_job_writes_is_published(scheduler: FakeScheduler) -> None:
    with working(scheduler):
        scheduler.offer("p_print", job_id="p", word="hello")
        log = scheduler.wait(LogCaptured, "p")
        assert "hello\n" in log.text
        assert "hello by descriptor" in log.text
        assert log.dropped_bytes == 0


def test_an_unreadable_offer_is_put_aside_and_the_next_one_runs(scheduler: FakeScheduler) -> None:
    with working(scheduler):
        topic = scheduler.topology.work("default", Priority.MEDIUM).name
        scheduler.put(topic, "bad", b"\xff\xff")
        scheduler.offer("a_echo", job_id="bad")  # the same key: behind it in the same partition
        scheduler.wait(AttemptSucceeded, "bad")
        letter = scheduler.wait(DeadLetter)
        assert (letter.topic, letter.value, letter.key) == (topic, b"\xff\xff", b"bad")


def test_a_job_longer_than_the_poll_limit_disturbs_nobody(scheduler: FakeScheduler) -> None:
    with working(scheduler, hold_ms=100_000) as worker:  # nobody renews what is declined here
        scheduler.offer("t_wait", job_id="long")
        scheduler.wait(AttemptHeartbeat, "long")
        for n in range(50):
            scheduler.offer("a_echo", job_id=f"short-{n}")
        for n in range(50):
            scheduler.wait(AttemptSucceeded, f"short-{n}")
        assert worker.status().loop_age_s < 5.0
        assert len(scheduler.all(AttemptClaimed, "long")) == 1


def test_a_drain_finishes_what_runs_and_declines_what_comes(scheduler: FakeScheduler) -> None:
    with working(scheduler, slots=1, hold_ms=20_000) as worker:
        scheduler.offer("t_wait", job_id="running")
        scheduler.wait(AttemptHeartbeat, "running")
        scheduler.offer("a_echo", job_id="held")
        eventually(lambda: worker.status().held == 1)
        worker.drain()
        assert scheduler.wait(OfferDeclined, "held").reason == "DRAINING"
        worker_jobs.gate.set()
        scheduler.wait(AttemptSucceeded, "running")


@pytest.mark.parametrize("name", ["a_wait", "p_wait"])
def test_a_drain_hands_back_what_does_not_finish_in_time(scheduler: FakeScheduler, name: str) -> None:
    with working(scheduler, drain_ms=200) as worker:
        scheduler.offer(name, job_id="j")
        scheduler.wait(AttemptHeartbeat, "j")
        worker.drain()
        assert scheduler.wait(AttemptReleased, "j").reason == "DRAINING"


def test_a_hurried_drain_waits_for_nothing(scheduler: FakeScheduler) -> None:
    with working(scheduler, drain_ms=60_000) as worker:
        scheduler.offer("a_wait", job_id="j")
        scheduler.wait(AttemptHeartbeat, "j")
        worker.drain()
        worker.hurry()
        assert scheduler.wait(AttemptReleased, "j").reason == "DRAINING"


def test_a_start_that_is_confirmed_during_a_drain_is_released(scheduler: FakeScheduler) -> None:
    scheduler.answer = lambda claim: None
    with working(scheduler) as worker:
        scheduler.offer("a_echo", job_id="j")
        claim = scheduler.wait(AttemptClaimed, "j")
        worker.drain()
        eventually(lambda: worker.status().state is WorkerState.DRAINING)
        scheduler.confirm(claim)
        assert scheduler.wait(AttemptReleased, "j").reason == "DRAINING"
        assert scheduler.all(AttemptSucceeded) == []


def test_two_workers_share_the_offers_and_a_leaving_one_hands_its_partitions_over(scheduler: FakeScheduler) -> None:
    with working(scheduler) as stays:
        with working(scheduler) as leaves:
            eventually(lambda: stays.status().partitions > 0 and leaves.status().partitions > 0)
        for n in range(20):
            scheduler.offer("a_echo", job_id=f"j{n}")
        for n in range(20):
            assert scheduler.wait(AttemptSucceeded, f"j{n}").worker_id == stays.worker_id


def test_a_restarted_worker_does_not_run_again_what_was_answered(scheduler: FakeScheduler) -> None:
    with working(scheduler, worker_id="same"):
        for n in range(10):
            scheduler.offer("a_echo", job_id=f"j{n}")
        for n in range(10):
            scheduler.wait(AttemptSucceeded, f"j{n}")
    with working(scheduler, worker_id="same"):
        scheduler.offer("a_echo", job_id="new")
        scheduler.wait(AttemptSucceeded, "new")
        assert {claim.job_id for claim in scheduler.all(AttemptClaimed)} == {f"j{n}" for n in range(10)} | {"new"}
        assert len(scheduler.all(AttemptClaimed)) == 11


def test_a_report_that_meets_a_dead_broker_arrives_when_it_is_back(broker: EmbeddedKafka) -> None:
    worker_jobs.gate.clear()
    with fake_scheduler(broker.bootstrap, "outage.") as scheduler, working(scheduler, lease_ms=60_000):
        scheduler.offer("t_wait", job_id="j")
        scheduler.wait(AttemptHeartbeat, "j")
        broker.kill()
        worker_jobs.gate.set()
        broker.restart()
        assert scheduler.wait(AttemptSucceeded, "j").result == b'"late"'
        scheduler.offer("a_echo", job_id="after")
        scheduler.wait(AttemptSucceeded, "after")


def test_a_worker_without_contact_for_a_lease_stops_what_it_runs(broker: EmbeddedKafka) -> None:
    with fake_scheduler(broker.bootstrap, "silence.") as scheduler, working(scheduler, lease_ms=2_000) as worker:
        scheduler.offer("a_wait", job_id="j")
        scheduler.wait(AttemptHeartbeat, "j")
        broker.pause()
        eventually(lambda: worker.status().running == 0)
        broker.resume()
        assert scheduler.wait(AttemptReleased, "j").reason == "LEASE_AT_RISK"
