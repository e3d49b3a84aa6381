"""Following topics as they grow, for commands that show what happens now."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mainspring.cli.connect import connection_of
from mainspring.cli.errors import CliError, ExitCode

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from mainspring.settings import Settings

__all__ = ["follow", "tail_consumer"]

_POLL_S = 0.2


def tail_consumer(settings: "Settings", *, committed: bool = True) -> "Consumer":
    """A consumer that is assigned by hand: it joins no group and commits nothing."""
    from confluent_kafka import Consumer

    own = {
        "group.id": settings.topology().group("client.cli"),
        "fetch.wait.max.ms": 100,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
    }
    return Consumer(connection_of(settings).consumer_config(**own))


def follow(consumer: "Consumer", starts: Mapping[tuple[str, int], int]) -> Iterator["Message | None"]:
    """The records of these partitions from these offsets on, for ever; None whenever nothing has come for a while."""
    from confluent_kafka import TopicPartition

    consumer.assign([TopicPartition(topic, partition, offset) for (topic, partition), offset in starts.items()])
    while True:
        message = consumer.poll(_POLL_S)
        if message is None:
            yield None
            continue
        error = message.error()
        if error is None:
            yield message
        elif error.fatal() or not error.retriable():
            raise CliError(
                f"{message.topic()} cannot be followed.",
                why=error.str(),
                hint="`mainspring topics plan` tells whether the topics are as they should be.",
                code=ExitCode.FAILURE,
            )
