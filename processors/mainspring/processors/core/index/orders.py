"""How a queue orders its jobs, and what of that the index by time keeps, so that no row is read when jobs fall due."""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from zlib import crc32

from mainspring.processors.core.index.keys import TimeKey, decode_numbers, encode_numbers
from mainspring.processors.core.index.ready_job import ReadyJob
from mainspring.processors.core.job.waiting import waits_until_ms
from mainspring.processors.core.rules import QueueRules
from mainspring.schemas.tables import JobState

__all__ = ["QueueOrder", "Waiting", "decode_waiting", "encode_waiting", "time_key"]

Waiting = tuple[str, int, ReadyJob]
"""A waiting job: its queue, the tag of that queue's order, and its place in it."""

_HEAD = Struct(">IBHH")


class QueueOrder:
    """The order of one queue.

    `tag` tells orders apart: by the strategy's class and attributes. What was ordered by another is ordered anew.
    """

    __slots__ = ("_strategy", "by_priority", "name", "tag")

    def __init__(self, name: str, rules: QueueRules) -> None:
        strategy = rules.strategy
        kind = type(strategy)
        attributes = sorted(getattr(strategy, "__dict__", {}).items())
        self.name = name
        self.by_priority = strategy.by_priority
        self.tag = crc32(f"{kind.__module__}.{kind.__qualname__}{attributes!r}{self.by_priority}".encode())
        self._strategy = strategy

    def ready_job(self, state: JobState) -> ReadyJob:
        """The job's place in the order of the queue."""
        key = self._strategy.key(state)
        return ReadyJob(
            key if isinstance(key, tuple) else (key,),
            state.seq,
            state.job_id,
            state.priority if self.by_priority else 0,
            state.tenant,
            waits_until_ms(state),
            state.priority,
        )


def time_key(job: ReadyJob) -> TimeKey:
    """Where the job stands in the index by time."""
    return job.at_ms, job.seq, job.job_id


def encode_waiting(waiting: Waiting) -> bytes:
    """The bytes beside a job's time key."""
    queue, tag, job = waiting
    return _lane(queue, tag, job.band, job.tenant) + encode_numbers(job.key)


@lru_cache(maxsize=1_024)
def _lane(queue: str, tag: int, band: int, tenant: str) -> bytes:
    name, tenant_name = queue.encode(), tenant.encode()
    return _HEAD.pack(tag, band, len(name), len(tenant_name)) + name + tenant_name


def decode_waiting(
    priority: int, key: TimeKey, data: bytes, again: Callable[[str], Waiting | None], tag_of: Callable[[str], int]
) -> Waiting:
    """What was encoded. Where the order of the queue has changed since, what `again` makes of the job's row.

    `tag_of` gives the tag of a queue's present order.
    """
    tag, band, name_size, tenant_size = _HEAD.unpack_from(data)
    tenant_at = _HEAD.size + name_size
    queue = data[_HEAD.size : tenant_at].decode()
    if tag != tag_of(queue):
        anew = again(key[2])
        if anew is not None:
            return anew
    numbers, _ = decode_numbers(data, tenant_at + tenant_size)
    tenant = data[tenant_at : tenant_at + tenant_size].decode()
    return queue, tag, ReadyJob(numbers, key[1], key[2], band, tenant, key[0], priority)
