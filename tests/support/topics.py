"""Topics of a test, made quickly: no comparison, no waiting for every broker."""

from collections.abc import Iterable

from confluent_kafka.admin import AdminClient, NewTopic

from mainspring.topics import Connection, Topic

__all__ = ["make_topics"]


def make_topics(connection: Connection, topics: Iterable[Topic]) -> None:
    """Makes the topics on a broker of one node."""
    new = [
        NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=1, config=dict(topic.config))
        for topic in topics
    ]
    admin = AdminClient(connection.admin_config())  # its futures end with it
    for made in admin.create_topics(new, operation_timeout=30).values():
        made.result()
