"""One reading of the inputs, put into the order in which it is decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mainspring.processors.engine.partition import Partition
from mainspring.processors.engine.ports import Received

__all__ = ["Batch", "Slice", "in_order", "split"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Records of one place, in the order of their offsets."""

    topic: str
    partition: int
    records: list[Received]


Batch = list[Slice]


def in_order(records: Sequence[Received], inputs: Sequence[str], partitions: Mapping[int, Partition]) -> Batch:
    """Records by place, the inputs in their given order; those of partitions that are not ready or not ours are left out.

    They are read again by whoever owns the partition, from its committed offsets.
    """
    by_place: dict[tuple[str, int], list[Received]] = {}
    for record in records:
        place = (record.topic(), record.partition())
        known = by_place.get(place)
        if known is None:
            by_place[place] = [record]
        else:
            known.append(record)
    batch: Batch = []
    for topic in inputs:
        for (name, number), read in by_place.items():
            if name != topic:
                continue
            partition = partitions.get(number)
            if partition is None or partition.program is None:
                continue
            due = partition.position[name, number]
            if read[0].offset() < due:
                read = [record for record in read if record.offset() >= due]
            if read:
                batch.append(Slice(topic=name, partition=number, records=read))
    return batch


def split(batch: Batch) -> tuple[Batch, Batch]:
    """Two halves, neither of them empty, that keep the order within each place. The batch has at least two records."""
    total = sum(len(each.records) for each in batch)
    room = total // 2
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
