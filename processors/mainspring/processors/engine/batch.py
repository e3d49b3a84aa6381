"""One reading of the inputs, put into the order in which it is decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mainspring.processors.engine.partition import Partition
from mainspring.processors.engine.ports import Place, Received

__all__ = ["Batch", "Slice", "count", "in_order", "places", "split"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Records of one place, in the order of their offsets."""

    topic: str
    partition: int
    records: list[Received]


Batch = list[Slice]


def count(batch: Batch) -> int:
    """How many records there are."""
    return sum(len(each.records) for each in batch)


def places(batch: Batch) -> frozenset[Place]:
    """Where its records are from."""
    return frozenset((each.topic, each.partition) for each in batch)


def in_order(records: Sequence[Received], inputs: Sequence[str], partitions: Mapping[int, Partition]) -> Batch:
    """Records by place, the inputs in their given order.

    Records of partitions that are not ready, or not ours, are left out: whoever owns the partition reads them again,
    from its committed offsets.
    """
    by_place: dict[Place, list[Received]] = {}
    for record in records:
        place = (record.topic(), record.partition())
        known = by_place.get(place)
        if known is None:
            by_place[place] = [record]
        else:
            known.append(record)
    batch: Batch = []
    for topic in inputs:
        for place, read in by_place.items():
            partition = partitions.get(place[1])
            if place[0] != topic or partition is None or partition.program is None:
                continue
            due = partition.position[place]
            fresh = read if read[0].offset() >= due else [record for record in read if record.offset() >= due]
            if fresh:
                batch.append(Slice(topic=topic, partition=place[1], records=fresh))
    return batch


def split(batch: Batch) -> tuple[Batch, Batch]:
    """Two halves, neither of them empty, that keep the order within each place. The batch has at least two records."""
    room = count(batch) // 2
    first: Batch = []
    second: Batch = []
    for each in batch:
        taken = min(room, len(each.records))
        room -= taken
        if taken:
            first.append(Slice(topic=each.topic, partition=each.partition, records=each.records[:taken]))
        if taken < len(each.records):
            second.append(Slice(topic=each.topic, partition=each.partition, records=each.records[taken:]))
    return first, second
