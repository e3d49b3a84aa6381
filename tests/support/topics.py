"""Topics of a test, made quickly: no comparison of settings, and of one broker."""

from collections.abc import Iterable

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from mainspring.topics import Connection, Topic
from tests.support.waiting import eventually

__all__ = ["await_leaders", "make_topics"]

_CALL_S = 10


def make_topics(connection: Connection, topics: Iterable[Topic]) -> None:
    """Makes the topics on a broker of one node."""
    new = [
        NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=1, config=dict(topic.config))
        for topic in topics
    ]
    admin = AdminClient(connection.admin_config())  # its futures end with it
    for made in admin.create_topics(new, operation_timeout=30).values():
        made.result()
    await_leaders(admin, [topic.topic for topic in new])


def await_leaders(admin: AdminClient, names: Iterable[str]) -> None:
    """Waits until the broker knows of topics that have been made: the controller is ahead of it, more so under load."""
    wanted = TopicCollection(list(names))

    def are_led() -> bool:
        try:
            found = [each.result() for each in admin.describe_topics(wanted, request_timeout=_CALL_S).values()]
        except KafkaException:
            return False
        return all(partition.leader is not None for topic in found for partition in topic.partitions)

    eventually(are_led)
