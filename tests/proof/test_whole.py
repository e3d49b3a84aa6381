"""Whole installations of real processes: poison everywhere, a broker that restarts, busy neighbours, foreign code."""

import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from mainspring.client import Submission
from mainspring.jobs import JobOptions
from mainspring.local import EmbeddedKafka
from mainspring.log import KafkaLog, dead_letters
from mainspring.processors.projector.view import View
from mainspring.schemas import DeadLetter, JobCompleted, JobStarted, JobStatus, JobSubmitted
from mainspring.schemas.avro_types import newest
from mainspring.schemas.lock import locked
from mainspring.topics import Topic, partition_for
from tests.proof import jobs
from tests.proof.site import ROOT, Site, a_site, environment, names
from tests.support.proofs import Report

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(180)]

TIMEOUT_S = 60.0
LEASE_AND_A_BIT_MS = 10_000
BACK_MS = 45_000
POISON = (b"", b"not Avro at all", b"\x00" + struct.pack(">i", 2_000_000_000) + b"\x02", None)


def all_complete(site: Site, ids: list[str], what: str) -> None:
    site.until(lambda: all(site.board.has(JobCompleted, job_id) for job_id in ids), what)


def quick_jobs(site: Site, kind: str, count: int) -> list[str]:
    """Submits jobs that do nothing."""
    ids = list(names(kind, count))
    site.client.submit_many([Submission(jobs.quick.job(), options=JobOptions(job_id=job_id)) for job_id in ids])
    return ids


def put_poison(site: Site, topic: Topic) -> None:
    """Everything that cannot be read, on every partition of a topic."""
    producer = Producer(site.settings.connection().producer_config())
    for partition in range(topic.partitions):
        for value in POISON:
            producer.produce(topic.name, value, b"poison", partition)
    assert producer.flush(TIMEOUT_S) == 0


def test_poison_in_every_topic_is_put_aside_and_all_goes_on(kafka: str, prefix: str, tmp_path: Path) -> None:
    with a_site(kafka, prefix, tmp_path) as site:
        scheduler = site.scheduler("s1")
        site.worker("w1")
        site.projector()
        all_complete(site, quick_jobs(site, "before", 20), "jobs before the poison to complete")
        topology = site.topology
        work = tuple(topic for topic in topology.all() if topic.growable)
        inputs = (topology.commands, topology.followups, topology.attempts)

        # when all that schedulers, workers and readers of output read holds what nobody can read
        for topic in (*inputs, *work, topology.signals, topology.logs):
            put_poison(site, topic)

        # then it goes on, on every partition
        ids = quick_jobs(site, "after", 40)
        assert {partition_for(job_id.encode(), topology.partitions) for job_id in ids} == set(range(4))
        all_complete(site, ids, "jobs after the poison to complete")
        # and what was meant for schedulers and workers lies in the dead letters with its bytes
        site.until(lambda: is_put_aside(site, (*inputs, *work)), "all poison to be put aside")
        code, report = site.verify()
        assert code == 0, report["findings"]

        # when even what only the scheduler's rights can write holds some, and it is read from its beginning
        for topic in (topology.events, topology.scheduler_changelog, topology.dead_letters):
            put_poison(site, topic)
        scheduler.kill()
        site.scheduler("s2")
        last = quick_jobs(site, "last", 40)
        all_complete(site, last, "jobs after the takeover to complete")

        # then the view goes on, and tells of it
        with View(site.settings.view.url.get_secret_value()) as view:
            site.until(lambda: all(view.get(job_id) is not None for job_id in last), "the view to go on")
            assert len(view.unreadable()) == len(POISON) * topology.partitions
        # and the audit does not call such a log sound
        code, report = site.verify()
        assert code == 1
        assert {finding["check"] for finding in report["findings"]} == {"UNREADABLE"}


def is_put_aside(site: Site, topics: tuple[Topic, ...]) -> bool:
    """Whether each piece of poison on each partition of the topics has its dead letter."""
    found: Counter[tuple[str, int, bytes]] = Counter()
    with KafkaLog(site.settings.connection(), site.topology) as log:
        for read in dead_letters(log, site.settings.codec()):
            letter = read.record
            assert isinstance(letter, DeadLetter)
            found[letter.topic, letter.partition, letter.value or b""] += 1
    wanted = Counter(
        (topic.name, partition, value or b"")
        for topic in topics
        for partition in range(topic.partitions)
        for value in POISON
    )
    return found >= wanted


def test_delayed_jobs_that_fell_due_while_the_only_broker_restarted_start_when_it_is_back(
    broker: EmbeddedKafka, tmp_path: Path, report: Report
) -> None:
    lease = {"worker": {"lease_ms": 5_000, "heartbeat_ms": 1_000}}
    with a_site(broker.bootstrap, "restarted.", tmp_path, lease) as site:
        site.scheduler("s1")
        site.worker("w1")
        ids = quick_jobs(site, "quick", 1_000)
        site.until(lambda: site.board.completed >= 200, "200 jobs to complete")
        late = list(names("late", 5))
        site.client.submit_many(
            [Submission(jobs.quick.job(), options=JobOptions(job_id=job_id, delay=0.3)) for job_id in late]
        )

        # when
        broker.restart()
        back_ms = time.time() * 1_000
        all_complete(site, [*ids, *late], "every job to complete")

        # then
        waited_ms = max(event.decided_at_ms for job_id in late for event in site.board.of(JobStarted, job_id)) - back_ms
        assert waited_ms < BACK_MS
        code, found = site.verify("--no-view")
        assert code == 0, found["findings"]
        report(
            f"5 jobs fell due while the only broker restarted: started within {max(waited_ms, 0):.0f} ms of its return"
        )


def test_short_jobs_go_on_elsewhere_while_long_ones_hold_every_slot_of_a_worker(
    kafka: str, prefix: str, tmp_path: Path, report: Report
) -> None:
    with a_site(kafka, prefix, tmp_path) as site:
        site.scheduler("s1")
        site.worker("full", slots=8)
        long = list(names("long", 8))
        site.client.submit_many([Submission(jobs.nap.job(600.0), options=JobOptions(job_id=job_id)) for job_id in long])
        site.until(lambda: set(long) <= set(site.board.running), "every slot to be held")
        site.worker("free", slots=32)
        short = quick_jobs(site, "first", 1)
        all_complete(site, short, "the free worker to take offers")

        # when
        short = quick_jobs(site, "short", 500)
        all_complete(site, short, "the short jobs to complete")

        # then
        assert set(long) <= set(site.board.running), "the long ones still hold their slots"
        began = [site.board.of(JobStarted, job_id)[0] for job_id in short]
        assert {event.worker_id for event in began} == {"free"}
        waited_ms = max(event.decided_at_ms - site.board.of(JobSubmitted, event.job_id)[0].due_at_ms for event in began)
        assert waited_ms < LEASE_AND_A_BIT_MS
        report(
            f"500 short jobs beside a worker full of long ones: the last one started {waited_ms} ms after it was due"
        )


def test_two_installations_on_one_cluster_with_the_same_names_know_nothing_of_each_other(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with (
        a_site(kafka, f"{prefix}one.", tmp_path / "one") as one,
        a_site(kafka, f"{prefix}two.", tmp_path / "two") as two,
    ):
        both = (one, two)
        for site in both:
            site.scheduler("s1")
            site.worker("w1")
            site.projector()

        # when both get the same ids, and one of them a cancel as well
        for site, seconds in zip(both, (0.01, 0.02), strict=True):
            site.client.submit_many(
                [Submission(jobs.nap.job(seconds), options=JobOptions(job_id=job_id)) for job_id in names("same", 50)]
            )
        waiting = [site.client.submit(jobs.quick.job(), job_id="waiting", delay=600.0) for site in both]
        assert one.client.cancel("waiting").took_effect

        # then
        for site in both:
            all_complete(site, list(names("same", 50)), "every job to complete")
            began = site.ledger().began
            assert sorted(began) == [(job_id, 1) for job_id in names("same", 50)]
            assert all(len(entries) == 1 for entries in began.values())
        assert waiting[0].status(TIMEOUT_S) is JobStatus.CANCELLED
        assert waiting[1].status(TIMEOUT_S) is JobStatus.PENDING
        for site in both:
            code, report = site.verify()
            assert code == 0, report
            assert report["jobs"] == 51


def test_a_job_submitted_without_mainspring_runs_to_its_result(kafka: str, prefix: str, tmp_path: Path) -> None:
    schema = newest()["SubmitJob"]
    schema_file = tmp_path / "SubmitJob.avsc"
    schema_file.write_text(schema.text, encoding="utf-8")
    with a_site(kafka, prefix, tmp_path) as site:
        site.scheduler("s1")
        site.worker("w1")
        arguments = {
            "--bootstrap": kafka,
            "--topic": site.topology.commands.name,
            "--schema": str(schema_file),
            "--schema-id": str(locked()[schema.path].id),
            "--name": "nap",
            "--payload": '{"seconds": 0.01}',
        }

        # when
        submitted = subprocess.run(
            [sys.executable, "examples/plain_client/submit.py", *(each for pair in arguments.items() for each in pair)],
            capture_output=True,
            text=True,
            check=True,
            timeout=TIMEOUT_S,
            cwd=ROOT,
            env=environment(),
        )

        # then
        job_id = submitted.stdout.strip()
        assert site.client.handle(job_id).result(TIMEOUT_S) == "rested"
        assert list(site.ledger().ended) == [(job_id, 1)]
