"""A view and a log that do not belong together, on a real broker: the projector stops and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from mainspring.processors.projector import ProjectorError, ViewMismatchError, ViewPositionError
from mainspring.topics import Topology
from tests.projector.conftest import Cluster
from tests.support.topics import make_topics
from tests.support.view_rows import execute

pytestmark = pytest.mark.broker


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
    execute(view_url, "UPDATE positions SET last_event_id = 'another'")

    with cluster.projecting(view_url) as running:
        error = running.wait_for_error()

    assert isinstance(error, ViewPositionError)
    assert "this is not the log that the view was folded from" in str(error)


def test_a_view_that_is_ahead_of_the_log_is_noticed(cluster: Cluster, view_url: str) -> None:
    cluster.double.submit("job")
    cluster.project(view_url)
    execute(view_url, "UPDATE positions SET next_offset = next_offset + 1000")

    with cluster.projecting(view_url) as running:
        error = running.wait_for_error()

    assert isinstance(error, ViewPositionError)
    assert "the log lost events that the view has" in str(error)


def test_a_view_of_another_installation_is_refused(cluster: Cluster, view_url: str) -> None:
    cluster.double.submit("job")
    cluster.project(view_url)
    execute(view_url, "UPDATE positions SET topic = 'other.events'")

    with cluster.projecting(view_url) as running:
        error = running.wait_for_error()

    assert isinstance(error, ViewMismatchError)
    assert "folded from other.events" in str(error)


def test_a_missing_topic_and_a_wrong_partition_count_say_what_to_do(
    cluster: Cluster, kafka: str, prefix: str, tmp_path: Path
) -> None:
    for topology, words in (
        (Topology(prefix=f"{prefix}absent."), "topics apply"),
        (Topology(prefix=prefix, partitions=3), "has 2 partitions and the settings say 3"),
    ):
        url = f"sqlite:///{tmp_path / 'view.db'}"
        with cluster.projecting(url, topology=topology, topic_patience_s=0) as running:
            error = running.wait_for_error()
        assert isinstance(error, ProjectorError)
        assert words in str(error)
