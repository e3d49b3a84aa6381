"""The projector on a real broker: events into a view, exactly, in both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainspring.log.kafka import KafkaLog
from mainspring.processors.projector import ViewBusyError
from mainspring.processors.projector.view import View
from mainspring.schemas import JobStatus, Record
from tests.projector.conftest import Cluster
from tests.support.every_life import every_life
from tests.support.postgres import PostgresServer
from tests.support.view_rows import dump

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
    topic, home = cluster.topology.events, cluster.double.partition(job_id)
    with KafkaLog(cluster.connection, cluster.topology) as log:
        span = log.spans([topic])[topic.name, home]
        records = [raw for batch in log.read(topic, home, span) for raw in batch if raw.key == job_id.encode()]
    value = records[-1].value
    assert value is not None
    return cluster.codec.decode(value)
