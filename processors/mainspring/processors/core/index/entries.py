"""What the table holds of the indexes: by the row of a job, the entries that there must be of it.

`#w` + priority + time key → waiting or ready, by the instant until which it waits (or waited)
`#d` + time key → has not started, by its start deadline
`#h` + time key → finished, by when
`#o`            → the ids of all jobs on offer or running, in one row: there are few, and they change all the time
`#c`            → how many there are of the first three

The partition's indexes write these as they change (`JobIndexes`); a restore from the changelog makes them here, from
what a row was and what it is. Either way the table's entries are those of its rows, no more and no fewer.
"""

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final

from mainspring.processors.core.index.keys import encode_time_key
from mainspring.processors.core.index.orders import QueueOrder, encode_waiting, time_key
from mainspring.processors.core.index.ready_job import ReadyJob
from mainspring.processors.core.ports import IndexRow, IndexStore
from mainspring.schemas.common import JobStatus
from mainspring.schemas.tables import JobState

__all__ = [
    "COUNTS_KEY",
    "DEADLINE_PREFIX",
    "FINISHED_PREFIX",
    "IN_FLIGHT_KEY",
    "LAYOUT",
    "WAITING_PREFIX",
    "Counts",
    "changed_entries",
    "decode_counts",
    "decode_ids",
    "encode_counts",
    "encode_ids",
    "entries_of",
    "in_flight_in",
    "is_in_flight",
    "start_deadline_of",
    "waiting_key",
    "waiting_range",
]

LAYOUT: Final = "4"
"""Changes with the form of the entries: a local table with others is made again from the changelog."""

WAITING_PREFIX: Final = b"#w"
DEADLINE_PREFIX: Final = b"#d"
FINISHED_PREFIX: Final = b"#h"
IN_FLIGHT_KEY: Final = b"#o"
COUNTS_KEY: Final = b"#c"

Counts = tuple[int, int, int]
"""Entries by `#w`, `#d` and `#h`."""

_COUNTS = Struct(">QQQ")
_COUNTED = (WAITING_PREFIX, DEADLINE_PREFIX, FINISHED_PREFIX)
_PREFIX_BYTES = 2
"""Of each of these."""


def waiting_range(priority: int) -> bytes:
    """What leads the keys of all waiting jobs of a priority."""
    return WAITING_PREFIX + bytes((priority,))


def waiting_key(job: ReadyJob) -> bytes:
    """The key of a job's entry while it waits or is ready."""
    return waiting_range(job.priority) + encode_time_key(time_key(job))


def encode_counts(counts: Counts) -> bytes:
    """The bytes of the counts."""
    return _COUNTS.pack(*counts)


def decode_counts(data: bytes | None) -> Counts:
    """The counts of a table; None: of an empty one."""
    if data is None:
        return 0, 0, 0
    waiting, deadlines, finished = _COUNTS.unpack(data)
    return waiting, deadlines, finished


def is_in_flight(state: JobState) -> bool:
    """Whether the job is on offer or running."""
    return state.status is JobStatus.RUNNING or state.dispatch.offered_attempt > 0


def start_deadline_of(state: JobState) -> int | None:
    """The instant by which the job must have started, where that is still to be watched."""
    if state.start_deadline_ms is None or state.attempt or state.status >= JobStatus.COMPLETED:
        return None
    return None if state.status is JobStatus.RUNNING else state.start_deadline_ms


def in_flight_in(store: IndexStore) -> list[str]:
    """The ids of the jobs that are on offer or running."""
    found = store.scan(IN_FLIGHT_KEY, b"", 1)
    return decode_ids(found[0][1] if found else None)


def encode_ids(ids: Iterable[str]) -> bytes:
    """The bytes of ids. No id has a line break: `check_id` sees to it."""
    return "\n".join(ids).encode()


def decode_ids(data: bytes | None) -> list[str]:
    """The ids; None: there are none."""
    return data.decode().split("\n") if data else []


def entries_of(state: JobState, order_of: Callable[[str], QueueOrder]) -> dict[bytes, bytes]:
    """The entries of one row; of a job in flight its id, which is in a row with others, comes on top."""
    name = state.job_id
    if state.status >= JobStatus.COMPLETED:
        return {FINISHED_PREFIX + encode_time_key((state.finished_at_ms or 0, state.seq, name)): b""}
    entries: dict[bytes, bytes] = {}
    deadline_ms = start_deadline_of(state)
    if deadline_ms is not None:
        entries[DEADLINE_PREFIX + encode_time_key((deadline_ms, state.seq, name))] = b""
    if not is_in_flight(state):
        order = order_of(state.queue)
        job = order.ready_job(state)
        entries[waiting_key(job)] = encode_waiting((state.queue, order.tag, job))
    return entries


def changed_entries(
    changes: Iterable[tuple[JobState | None, JobState | None]],
    order_of: Callable[[str], QueueOrder],
    counts: Counts,
    in_flight: Iterable[str],
) -> list[IndexRow]:
    """What to write where rows have changed, each from its former state to its new one. None: there is no row.

    `counts`, `in_flight`: what the table says now.
    """
    counted = dict(zip(_COUNTED, counts, strict=True))
    flying = dict.fromkeys(in_flight)
    rows: dict[bytes, bytes | None] = {}
    for before, after in changes:
        old = {} if before is None else entries_of(before, order_of)
        new = {} if after is None else entries_of(after, order_of)
        rows.update((key, None) for key in old.keys() - new.keys())
        rows.update((key, value) for key, value in new.items() if old.get(key) != value)
        for key in old:
            counted[key[:_PREFIX_BYTES]] -= 1
        for key in new:
            counted[key[:_PREFIX_BYTES]] += 1
        if before is not None and is_in_flight(before):
            flying.pop(before.job_id, None)
        if after is not None and is_in_flight(after):
            flying[after.job_id] = None
    waiting, deadlines, finished = (max(0, counted[prefix]) for prefix in _COUNTED)
    rows[COUNTS_KEY] = encode_counts((waiting, deadlines, finished))
    rows[IN_FLIGHT_KEY] = encode_ids(flying)
    return [*rows.items()]
