"""The log on a real broker: control records, aborted, open and torn transactions, and a log that grows meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from mainspring.log import ExportedLog, KafkaLog, LogTopicError, export, history, state_at, tail, verify
from mainspring.log.verify import Check
from mainspring.schemas import Codec, JobStatus
from mainspring.topics import Connection, Topic, Topology
from tests.support.every_life import every_life
from tests.support.synthetic_kafka import SyntheticCluster
from tests.support.waiting import eventually

pytestmark = pytest.mark.broker


@pytest.fixture
def cluster(kafka: str, prefix: str, codec: Codec) -> SyntheticCluster:
    return SyntheticCluster.new(kafka, prefix, codec)


@pytest.fixture
def log(cluster: SyntheticCluster) -> Iterator[KafkaLog]:
    with KafkaLog(cluster.connection, cluster.topology) as opened:
        yield opened


def test_a_sound_log_is_clean_and_its_control_records_are_counted(
    cluster: SyntheticCluster, log: KafkaLog, codec: Codec
) -> None:
    every_life(cluster.double)

    report = verify(log, codec)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.jobs == 14
    assert report.records["events"] == 45
    assert report.gaps["events"] > 30  # one for each transaction and partition
    assert report.gaps["commands"] == 0


def test_an_aborted_transaction_is_invisible_and_no_fault(
    cluster: SyntheticCluster, log: KafkaLog, codec: Codec
) -> None:
    # given a decision that was aborted and then made again
    double = cluster.double
    double.submit("job")
    state = double.states["job"]
    with double.transaction(end=cluster.sink.abort):
        double.start("job")
    double.states["job"] = state
    double.start("job")

    report = verify(log, codec)

    assert report.ok, [str(finding) for finding in report.findings]
    assert [each.type for each in history(log, codec, "job")].count("JobStarted") == 1
    # and who reads uncommitted sees what a fault would look like
    with KafkaLog(cluster.connection, cluster.topology, committed=False) as uncommitted:
        assert not verify(uncommitted, codec).ok


def test_a_torn_transaction_is_found(
    cluster: SyntheticCluster, log: KafkaLog, codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a transaction that was committed before its last event was in it, as a late EndTxn does
    double = cluster.double
    first, second = "job-a", "job-b"
    double.submit(first)
    double.submit(second)
    append = cluster.sink.append
    events: list[int] = []

    def tear(topic: Topic, partition: int, key: bytes | None, value: bytes | None, time_ms: int) -> int:
        if topic is cluster.topology.events:
            events.append(partition)
            if len(events) == 2:
                return -1
        return append(topic, partition, key, value, time_ms)

    monkeypatch.setattr(cluster.sink, "append", tear)
    with double.transaction():
        double.start(first)
        double.start(second)

    report = verify(log, codec)

    found = {finding.check: finding for finding in report.findings}
    assert "1 of 2 events are visible; missing 1" in found[Check.TORN_TRANSACTION].detail


def test_an_open_transaction_hides_what_follows_and_the_audit_ends_before_it(
    cluster: SyntheticCluster, log: KafkaLog, codec: Codec
) -> None:
    double = cluster.double
    double.submit("before")
    held: list[bool] = []
    with double.transaction(end=lambda: held.append(cluster.sink._in_transaction.flush(30) == 0)):
        double.start("before")
    assert held == [True]

    report = verify(log, codec)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.jobs_by_status == {"PENDING": 1}
    cluster.sink.commit()
    # The broker's last stable offset follows the answer to the commit, a moment later.
    eventually(lambda: verify(log, codec).jobs_by_status == {"RUNNING": 1})


def test_a_log_that_grows_while_it_is_audited_is_clean(cluster: SyntheticCluster, log: KafkaLog, codec: Codec) -> None:
    # given a scheduler at work
    stop = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        number = 0
        try:
            while not stop.is_set():
                number += 1
                cluster.double.submit(f"job-{number}")
                cluster.double.start(f"job-{number}")
                cluster.double.succeed(f"job-{number}")
        except BaseException as error:  # noqa: BLE001  # told by the assertion below
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        # when it is audited again and again meanwhile
        eventually(lambda: failed or verify(log, codec).jobs > 0)
        reports = [verify(log, codec) for _ in range(5)]
        eventually(lambda: failed or verify(log, codec).jobs > reports[0].jobs)
    finally:
        stop.set()
        thread.join(30)

    # then nothing is found, however far it had grown
    assert not failed
    assert [str(finding) for report in reports for finding in report.findings] == []


def test_records_past_retention_are_unverifiable_and_no_fault(
    cluster: SyntheticCluster, log: KafkaLog, codec: Codec
) -> None:
    every_life(cluster.double)
    admin = AdminClient(cluster.connection.admin_config())
    places = [TopicPartition(cluster.topology.attempts.name, partition, -1) for partition in range(2)]
    for future in admin.delete_records(places).values():
        future.result(30)

    report = verify(log, codec)

    assert report.ok, [str(finding) for finding in report.findings]
    assert report.unverifiable["cause_past_retention"] > 0


def test_the_state_at_a_time_is_read_only_as_far_as_it_must(
    cluster: SyntheticCluster, log: KafkaLog, codec: Codec
) -> None:
    cluster.double.submit("first")
    between_ms = cluster.double.now_ms
    cluster.double.tick(1_000)
    cluster.double.start("first")

    assert state_at(log, codec, between_ms).by_status == {JobStatus.PENDING: 1}
    assert state_at(log, codec, cluster.double.now_ms).by_status == {JobStatus.RUNNING: 1}


def test_an_export_of_a_live_log_is_audited_without_the_cluster(
    cluster: SyntheticCluster, log: KafkaLog, codec: Codec, tmp_path: Path
) -> None:
    every_life(cluster.double)

    export(log, codec, tmp_path / "log.jsonl")

    report = verify(ExportedLog(tmp_path / "log.jsonl"), codec)
    live = verify(log, codec)
    assert report.ok, [str(finding) for finding in report.findings]
    assert (report.records, report.gaps, report.jobs) == (live.records, live.gaps, live.jobs)


def test_tail_gives_the_newest_records_and_follows(cluster: SyntheticCluster, log: KafkaLog, codec: Codec) -> None:
    # given a log whose newest events are known
    for number in range(12):
        cluster.double.submit(f"job-{number}")
    newest = list(tail(log, codec, last=3))
    assert [each.key for each in newest] == [b"job-9", b"job-10", b"job-11"]
    assert [each.type for each in tail(log, codec, last=5, job_id="job-4")] == ["JobSubmitted"]

    # when it is followed
    deadline = time.monotonic() + 30
    follower = tail(log, codec, last=1, follow=True, stopped=lambda: time.monotonic() > deadline)
    assert next(follower).key == b"job-11"
    cluster.double.submit("later")

    # then what is written next comes
    assert next(follower).key == b"later"
    follower.close()


def test_the_newest_records_are_found_behind_many_control_records(
    cluster: SyntheticCluster, log: KafkaLog, codec: Codec
) -> None:
    double = cluster.double
    double.submit("kept")
    state = double.states["kept"]
    for _ in range(40):
        with double.transaction(end=cluster.sink.abort):
            double.start("kept")
        double.states["kept"] = state

    assert [each.key for each in tail(log, codec, last=2)] == [b"kept"]


def test_a_topic_that_is_not_there_is_named(kafka: str, prefix: str, codec: Codec) -> None:
    with (
        KafkaLog(Connection(kafka), Topology(prefix=prefix)) as log,
        pytest.raises(LogTopicError, match="does not exist"),
    ):
        verify(log, codec)
