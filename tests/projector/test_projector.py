"""The projector on a real broker: events into a view, exactly, in both databases."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from sqlalchemy import create_engine, text

from mainspring.processors.projector import (
    Projector,
    ProjectorError,
    ViewBusyError,
    ViewMismatchError,
    ViewPositionError,
)
from mainspring.processors.projector.database import parse_url
from mainspring.processors.projector.view import View
from mainspring.schemas import JobStatus, Record
from mainspring.topics import Connection
from tests.projector.conftest import Cluster, dump
from tests.support.every_life import every_life
from tests.support.postgres import PostgresServer
from tests.support.topics import make_topics

pytestmark = pytest.mark.broker

OUTCOMES = {
    "done": "COMPLETED",
    "retried": "COMPLETED",
    "failed": "FAILED",
    "timed-out": "TIMED_OUT",
    "lost": "COMPLETED",
    "released": "COMPLETED",
    "gone": "COMPLETED",
    "waits": "PENDING",
    "moved": "PENDING",
    "cancelled": "CANCELLED",
    "stopped": "CANCELLED",
    "runs": "RUNNING",
    "stopping": "RUNNING",
    "failed-again": "PENDING",
}


def test_every_life_of_a_job_is_in_the_view_as_its_events_tell_it(cluster: Cluster, view_url: str) -> None:
    # given one job of each kind
    every_life(cluster.double)

    # when they are projected
    status = cluster.project(view_url)

    # then the view has them all, each state equal to the fold, and the projector knows that it is at the end
    assert (status.unreadable, status.lag) == (0, 0)
    with View(view_url) as view:
        assert {job.job_id: job.status.name for job in view.list(limit=500).jobs} == OUTCOMES
        with view.snapshot() as snapshot:
            states = {state.job_id: state for p in range(2) for state, _ in snapshot.states(p)}
        for job_id, state in cluster.double.states.items():
            assert states[job_id] == state


def test_both_databases_and_a_view_that_was_rebuilt_hold_the_same_rows(
    cluster: Cluster, tmp_path: Path, postgres: PostgresServer
) -> None:
    every_life(cluster.double)
    sqlite, postgresql = f"sqlite:///{tmp_path / 'view.db'}", postgres.new_database()

    # when one view follows the log in small batches with restarts, one in a large one, and one is rebuilt
    cluster.project(sqlite, batch=3)
    first = dump(sqlite)
    cluster.project(postgresql)
    cluster.project(sqlite, rebuild=True)

    # then they are identical, row by row
    assert first["jobs"]
    assert dump(sqlite) == first
    assert dump(postgresql) == first


def test_a_projector_that_is_stopped_anywhere_goes_on_exactly_there(
    cluster: Cluster, view_url: str, tmp_path: Path
) -> None:
    # given a view that was stopped after each of several pieces of the log
    double = cluster.double
    for round_ in range(3):
        double.submit(f"job-{round_}")
        double.start(f"job-{round_}")
        cluster.project(view_url, batch=1)
        double.succeed(f"job-{round_}")
    cluster.project(view_url)

    # then it equals one that was folded in one go
    whole = f"sqlite:///{tmp_path / 'whole.db'}"
    cluster.project(whole)
    assert dump(view_url) == dump(whole)


def test_a_view_says_which_topic_it_is_a_fold_of_before_it_has_an_event(cluster: Cluster, view_url: str) -> None:
    cluster.project(view_url)

    with View(view_url) as view:
        source = view.source()
    assert source is not None
    assert source.topic == cluster.topology.events.name
    assert len(source.topic_id) == len("AAAAAAAAAAAAAAAAAAAAAA")


def test_what_was_aborted_never_shows(cluster: Cluster, view_url: str) -> None:
    double = cluster.double
    double.submit("kept")
    with double.transaction(end=cluster.sink.abort):
        double.start("kept")
        double.submit("never")

    cluster.project(view_url)

    with View(view_url) as view:
        assert [job.job_id for job in view.list().jobs] == ["kept"]
        assert view.list().jobs[0].status is JobStatus.PENDING
        assert view.get("never") is None


def test_a_reader_waits_until_its_own_write_is_in_the_view(cluster: Cluster, view_url: str) -> None:
    cluster.double.submit("first")
    with cluster.projecting(view_url) as running:
        running.catch_up()
        with View(view_url) as view:
            partition = cluster.double.partition("mine")
            before = view.position().get(partition)
            offset = 0 if before is None else before.next_offset
            assert not view.wait_for(partition, offset, timeout_s=0.05)

            cluster.double.submit("mine")

            assert view.wait_for(partition, offset, timeout_s=20)
            assert view.get("mine") is not None


def test_a_second_projector_on_the_same_view_is_refused(cluster: Cluster, view_url: str) -> None:
    with cluster.projecting(view_url) as running:
        running.catch_up()
        with cluster.projecting(view_url) as second:
            error = second.wait_for_error()

    assert isinstance(error, ViewBusyError)
    assert "another projector writes this view" in str(error)
    # and the lock ends with its holder
    cluster.project(view_url)


def test_a_record_that_does_not_decode_is_told_and_blocks_nothing(cluster: Cluster, view_url: str) -> None:
    # given a poison record and an event without its job between sound ones
    double, topic = cluster.double, cluster.topology.events
    double.submit("before")
    home = double.partition("before")
    cluster.sink.append(topic, home, b"poison", b"\x00\x00\x00\x00\x7f?", 0)
    cluster.sink.append(topic, home, b"nothing", None, 0)
    double.submit("stray")
    double.start("stray")
    started = cluster.codec.encode(_last_event(cluster, "stray"))
    cluster.sink.append(topic, home, b"stray", started, 0)
    double.start("before")

    status = cluster.project(view_url)

    assert status.unreadable == 3
    with View(view_url) as view:
        told = view.unreadable()
        assert sorted(each.reason for each in told) == ["INAPPLICABLE", "UNEXPECTED_TYPE", "UNKNOWN_TYPE"]
        before = view.get("before")
        assert before is not None
        assert before.status is JobStatus.RUNNING


def _last_event(cluster: Cluster, job_id: str) -> Record:
    from mainspring.log.kafka import KafkaLog

    topic, home = cluster.topology.events, cluster.double.partition(job_id)
    with KafkaLog(cluster.connection, cluster.topology) as log:
        span = log.spans([topic])[topic.name, home]
        records = [raw for batch in log.read(topic, home, span) for raw in batch if raw.key == job_id.encode()]
    value = records[-1].value
    assert value is not None
    return cluster.codec.decode(value)


def test_a_topic_that_was_made_anew_is_noticed_at_the_start(cluster: Cluster, view_url: str) -> None:
    cluster.double.submit("old")
    cluster.project(view_url)

    recreate(cluster)

    with cluster.projecting(view_url) as running:
        error = running.wait_for_error()
    assert isinstance(error, ViewMismatchError)
    assert "was deleted and made anew" in str(error)
    assert "--rebuild" in str(error)
    # and a rebuild follows the new topic
    assert cluster.project(view_url, rebuild=True).events == 0


def test_a_topic_that_is_made_anew_while_the_projector_runs_is_noticed(cluster: Cluster, view_url: str) -> None:
    cluster.double.submit("old")
    with cluster.projecting(view_url, topic_check_ms=50) as running:
        running.catch_up()
        recreate(cluster)
        error = running.wait_for_error()

    assert isinstance(error, ProjectorError)


def recreate(cluster: Cluster) -> None:
    topic = cluster.topology.events
    admin = AdminClient(cluster.connection.admin_config())
    admin.delete_topics([topic.name], operation_timeout=30)[topic.name].result()
    for attempt in range(100):
        try:
            make_topics(cluster.connection, [topic])
        except Exception:
            if attempt == 99:
                raise
        else:
            return


def test_events_that_left_the_log_before_they_were_folded_stop_the_projector(cluster: Cluster, view_url: str) -> None:
    # given a view, and more events that are removed before it sees them
    double, topic = cluster.double, cluster.topology.events
    double.submit("seen")
    cluster.project(view_url)
    double.start("seen")
    double.succeed("seen")
    cut(cluster, topic.name, double.partition("seen"))

    with cluster.projecting(view_url) as running:
        error = running.wait_for_error()

    assert isinstance(error, ViewPositionError)
    assert "the events between were removed" in str(error)


def test_a_view_cannot_be_begun_on_a_log_without_its_beginning(cluster: Cluster, view_url: str) -> None:
    cluster.double.submit("lost")
    cut(cluster, cluster.topology.events.name, cluster.double.partition("lost"))

    with cluster.projecting(view_url) as running:
        assert isinstance(running.wait_for_error(), ViewPositionError)


def cut(cluster: Cluster, topic: str, partition: int) -> None:
    """Removes all records of a partition, as retention does."""
    admin = AdminClient(cluster.connection.admin_config())
    place = TopicPartition(topic, partition, -1)
    admin.delete_records([place])[place].result(30)


def test_another_record_where_the_last_event_was_is_noticed(cluster: Cluster, view_url: str) -> None:
    # given a view whose last event is not what the log has there
    cluster.double.submit("job")
    cluster.project(view_url)
    engine = create_engine(parse_url(view_url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE positions SET last_event_id = 'another'"))
    engine.dispose()

    with cluster.projecting(view_url) as running:
        error = running.wait_for_error()

    assert isinstance(error, ViewPositionError)
    assert "this is not the log that the view was folded from" in str(error)


def test_a_view_that_is_ahead_of_the_log_is_noticed(cluster: Cluster, view_url: str) -> None:
    cluster.double.submit("job")
    cluster.project(view_url)
    engine = create_engine(parse_url(view_url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE positions SET next_offset = next_offset + 1000"))
    engine.dispose()

    with cluster.projecting(view_url) as running:
        error = running.wait_for_error()

    assert isinstance(error, ViewPositionError)
    assert "the log lost events that the view has" in str(error)


def test_a_view_of_another_installation_is_refused(cluster: Cluster, view_url: str) -> None:
    cluster.double.submit("job")
    cluster.project(view_url)
    engine = create_engine(parse_url(view_url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE positions SET topic = 'other.events'"))
    engine.dispose()

    with cluster.projecting(view_url) as running:
        error = running.wait_for_error()

    assert isinstance(error, ViewMismatchError)
    assert "folded from other.events" in str(error)


def test_a_missing_topic_and_a_wrong_partition_count_say_what_to_do(
    cluster: Cluster, kafka: str, prefix: str, tmp_path: Path
) -> None:
    from mainspring.topics import Topology

    for topology, words in (
        (Topology(prefix=f"{prefix}absent."), "topics apply"),
        (Topology(prefix=prefix, partitions=3), "has 2 partitions and the settings say 3"),
    ):
        url = f"sqlite:///{tmp_path / 'view.db'}"
        with cluster.projecting(url, topology=topology, topic_patience_s=0) as running:
            error = running.wait_for_error()
        assert isinstance(error, ProjectorError)
        assert words in str(error)


def test_a_topic_that_is_made_after_the_projector_was_started_is_waited_for(
    cluster: Cluster, prefix: str, tmp_path: Path
) -> None:
    later = replace(cluster.topology, prefix=f"{prefix}later.")
    with cluster.projecting(f"sqlite:///{tmp_path / 'view.db'}", topology=later, topic_patience_s=30) as running:
        running.wait_for(lambda status: status.error is not None and "topics apply" in status.error)

        make_topics(cluster.connection, [later.events])

        running.catch_up()


@pytest.mark.postgres
def test_a_database_that_breaks_the_connection_is_waited_for_and_nothing_is_lost(
    cluster: Cluster, postgres: PostgresServer
) -> None:
    url = postgres.new_database()
    cluster.double.submit("before")
    with cluster.projecting(url) as running:
        running.catch_up()

        # when the server ends the projector's connection
        engine = create_engine(parse_url(url))
        with engine.begin() as connection:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            )
        engine.dispose()
        cluster.double.submit("after")

        # then it comes back and folds the rest once
        running.wait_for(lambda status: status.events >= 2 and status.is_caught_up)
    with View(url) as view:
        assert {job.job_id for job in view.list().jobs} == {"before", "after"}
        assert view.counts().total == 2


def test_a_broker_that_is_away_is_waited_for(cluster: Cluster, tmp_path: Path) -> None:
    config = cluster.config(f"sqlite:///{tmp_path / 'view.db'}")
    from dataclasses import replace

    from tests.projector.conftest import Running

    running = Running(Projector(replace(config, connection=Connection("127.0.0.1:1"), admin_timeout_s=0.5)))
    running.start()
    running.wait_for(lambda status: status.error is not None)
    running.stop()
    assert running.error is None


PROGRAM = """
import sys
from mainspring.processors.projector import ProjectorConfig, run_projector
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology
bootstrap, prefix, partitions, url = sys.argv[1:]
topology = Topology(prefix=prefix, partitions=int(partitions))
sys.exit(run_projector(ProjectorConfig(
    connection=Connection(bootstrap), topology=topology, codec=Codec.embedded(), url=url)))
"""


def test_as_a_process_it_ends_with_zero_on_sigterm_and_with_one_where_it_cannot_go_on(
    cluster: Cluster, kafka: str, prefix: str, tmp_path: Path
) -> None:
    cluster.double.submit("job")
    url = f"sqlite:///{tmp_path / 'view.db'}"
    arguments = [sys.executable, "-c", PROGRAM, kafka, prefix]
    process = subprocess.Popen([*arguments, "2", url], env=os.environ | {"PYTHONWARNINGS": "ignore"})
    try:
        wait_until_there(url, "job")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()

    refused = subprocess.run([*arguments, "3", url], capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert "has 2 partitions" in refused.stderr


def wait_until_there(url: str, job_id: str) -> None:
    import time

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with View(url) as view:
                if view.get(job_id) is not None:
                    return
        except ProjectorError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"{job_id} is not in the view in time")
