"""How far this machine's clock is from the broker's."""

import secrets
import time
from typing import TYPE_CHECKING

from mainspring.cli.connect import connection_of

if TYPE_CHECKING:
    from confluent_kafka import Message, Producer

    from mainspring.settings import Settings

__all__ = ["clock_offset_ms"]

_SAMPLES = 5


def clock_offset_ms(settings: "Settings", timeout_s: float) -> tuple[int, int]:
    """This clock minus the broker's, and how wrong that may be, in milliseconds.

    The broker stamps the records of a topic with LogAppendTime; such a topic is made for it and deleted again. A stamp
    lies between send and acknowledgement, so half the shortest round trip bounds the error. Raises KafkaException.
    """
    from confluent_kafka import KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    connection = connection_of(settings)
    topic = f"{settings.topics.prefix}doctor-{secrets.token_hex(4)}"
    admin = AdminClient(connection.admin_config())
    made = NewTopic(topic, num_partitions=1, config={"message.timestamp.type": "LogAppendTime"})
    admin.create_topics([made], operation_timeout=timeout_s)[topic].result()
    try:
        producer = Producer(connection.producer_config(**{"linger.ms": 0}))
        samples = [_sample(producer, topic, timeout_s) for _ in range(_SAMPLES)]
        best = min((sample for sample in samples if sample is not None), key=lambda sample: sample[1], default=None)
        if best is None:
            raise KafkaException(f"no record was acknowledged within {timeout_s:g} s")
        return best
    finally:
        admin.delete_topics([topic], operation_timeout=timeout_s)[topic].result()


def _sample(producer: "Producer", topic: str, timeout_s: float) -> tuple[int, int] | None:
    """One offset with its error; None when the record was not acknowledged."""
    stamps: list[int] = []

    def acknowledged(error: object, message: "Message") -> None:
        if error is None:
            stamps.append(message.timestamp()[1])

    sent_ms = time.time_ns() / 1e6
    producer.produce(topic, b"", on_delivery=acknowledged)
    producer.flush(timeout_s)
    heard_ms = time.time_ns() / 1e6
    if not stamps:
        return None
    return round((sent_ms + heard_ms) / 2 - stamps[0]), max(1, round((heard_ms - sent_ms) / 2))
