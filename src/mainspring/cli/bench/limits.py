"""What the broker gives to bare clients on the same machine, with the same record: the limits of everything else."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mainspring.cli.bench.site import Site
from mainspring.cli.errors import CliError

if TYPE_CHECKING:
    from mainspring.client.outbox import Envelope
    from mainspring.settings import Settings

__all__ = ["Consumed", "Limits", "measure_limits", "read_through"]

_BATCH = 4_000
_READ = 2_000
_CALL_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Records per second."""

    raw_produce_per_s: float
    raw_consume_per_s: float
    raw_transaction_loop_per_s: float


def measure_limits(site: Site, records: int) -> Limits:
    """Measures what bare clients get.

    They produce so many submits of a no-op job with an idempotent producer, read them back, and copy them to another
    topic in transactions of up to 4,000 that also carry the offsets.
    """
    source, target = f"{site.prefix}raw", f"{site.prefix}raw-copy"
    _make_topics(site.settings, source, target)
    produced_s = _produce(site.settings, source, _submit(site.settings), records)
    consumed_s = _consume(site.settings, source, records)
    copied_s = _copy(site.settings, source, target, records)
    return Limits(
        raw_produce_per_s=round(records / produced_s),
        raw_consume_per_s=round(records / consumed_s),
        raw_transaction_loop_per_s=round(records / copied_s),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    """What a bare consumer read, and how long it took from the first record on."""

    records: int
    seconds: float


def read_through(settings: "Settings", topic: str) -> Consumed:
    """Reads all committed records of a topic with a bare consumer. Raises `CliError` when none comes for a minute."""
    from confluent_kafka import KafkaError

    consumer = _consumer(settings, topic, "raw-changelog", **{"enable.partition.eof": True})
    left, records, began_s = settings.topics.partitions, 0, 0.0
    while left > 0:
        first = consumer.poll(_CALL_S)
        began_s = began_s or time.monotonic()
        for message in [] if first is None else [first, *consumer.consume(_READ, 0)]:
            if message.error() is None:
                records += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left -= 1
            else:
                raise _no_record(message.error().str())
        if first is None:
            raise _no_record(f"nothing came within {_CALL_S:.0f} s")
    seconds = time.monotonic() - began_s
    consumer.close()
    return Consumed(records=records, seconds=seconds)


def _make_topics(settings: "Settings", *names: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    topics = settings.topics
    admin = AdminClient(settings.connection().admin_config())
    wanted = [NewTopic(name, topics.partitions, topics.replication) for name in names]
    for made in admin.create_topics(wanted, operation_timeout=_CALL_S).values():
        made.result()


def _submit(settings: "Settings") -> "Envelope":
    """A command as the client sends it."""
    from mainspring.client.commands import CommandMaker, Submission
    from mainspring.client.config import ClientConfig
    from mainspring.jobs.options import JobOptions

    maker = CommandMaker(ClientConfig.of(settings, actor="bench"))
    return maker.envelope(maker.submit(Submission("noop", {}), JobOptions(), ""))


def _produce(settings: "Settings", topic: str, submit: "Envelope", records: int) -> float:
    from confluent_kafka import Producer

    own = {"linger.ms": 50, "batch.size": 1_000_000, "batch.num.messages": 100_000, "delivery.report.only.error": True}
    producer = Producer(settings.connection().producer_config(**own))
    value, headers = submit.value, list(submit.headers)
    # Connecting and getting a producer id are no part of it.
    _try_produce(producer, topic, value, b"", headers)
    producer.flush(_CALL_S)
    began_s = time.monotonic()
    for number in range(records):
        key = b"%012d" % number
        while not _try_produce(producer, topic, value, key, headers):
            producer.poll(0.05)
    producer.flush(_CALL_S)
    return time.monotonic() - began_s


def _try_produce(producer: Any, topic: str, value: bytes, key: bytes, headers: list[Any]) -> bool:
    try:
        producer.produce(topic, value, key, headers=headers)
    except BufferError:
        return False
    return True


def _consumer(settings: "Settings", topic: str, group: str, **more: Any) -> Any:
    from confluent_kafka import Consumer, TopicPartition

    own = {"group.id": f"{settings.topics.prefix}{group}", "fetch.queue.backoff.ms": 10, **more}
    consumer = Consumer(settings.connection().consumer_config(**own))
    consumer.assign([TopicPartition(topic, number, 0) for number in range(settings.topics.partitions)])
    return consumer


def _read(consumer: Any, at_most: int) -> list[Any]:
    """The records at hand, waiting for the first. Raises `CliError` when none comes."""
    first = consumer.poll(_CALL_S)
    records = [] if first is None else [first, *consumer.consume(at_most - 1, 0)] if at_most > 1 else [first]
    failed = next((record.error() for record in records if record.error() is not None), None)
    if failed is not None or not records:
        raise _no_record(f"no record came within {_CALL_S:.0f} s" if failed is None else failed.str())
    return records


def _no_record(why: str) -> CliError:
    return CliError("The broker does not give back what was written to it.", why=why)


def _consume(settings: "Settings", topic: str, records: int) -> float:
    """From the first record on: connecting is no part of it."""
    consumer = _consumer(settings, topic, "raw-consume")
    left = records - len(_read(consumer, 1))
    began_s = time.monotonic()
    while left > 0:
        left -= len(_read(consumer, _READ))
    took_s = time.monotonic() - began_s
    consumer.close()
    return took_s


def _copy(settings: "Settings", source: str, target: str, records: int) -> float:
    from confluent_kafka import Producer, TopicPartition

    consumer = _consumer(settings, source, "raw-copy")
    name = f"{settings.topics.prefix}scheduler.raw-copy"
    own = {"transactional.id": name, "linger.ms": 5, "retry.backoff.ms": 2, "retry.backoff.max.ms": 50}
    producer = Producer(settings.connection().producer_config(**own))
    producer.init_transactions(_CALL_S)
    batch = _read(consumer, _BATCH)
    left = records
    began_s = time.monotonic()
    while True:
        producer.begin_transaction()
        offsets: dict[int, int] = {}
        for message in batch:
            producer.produce(target, message.value(), message.key(), message.partition())
            offsets[message.partition()] = message.offset() + 1
        producer.flush(_CALL_S)
        positions = [TopicPartition(source, number, offset) for number, offset in offsets.items()]
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), _CALL_S)
        producer.commit_transaction(_CALL_S)
        left -= len(batch)
        if left <= 0:
            break
        batch = _read(consumer, _BATCH)
    took_s = time.monotonic() - began_s
    consumer.close()
    return took_s
