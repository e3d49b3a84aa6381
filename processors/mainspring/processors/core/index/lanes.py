"""Where the later part of deep lanes of ready jobs waits: the local table, for as long as one owner has the partition.

A lane is the ready jobs of one tenant in one band of a queue. Nothing here is of use to another owner, who fills its
lanes from the index of what is due; so rows are written at once, and everything is cleared at the beginning.
"""

from struct import Struct
from typing import Final

from mainspring.processors.core.index.keys import decode_numbers, encode_numbers
from mainspring.processors.core.index.ready_job import ReadyJob
from mainspring.processors.core.ports import IndexStore

__all__ = ["LANE_PREFIX", "LaneStore"]

LANE_PREFIX: Final = b"#l"

_LANE = Struct(">I")
_SEQ = Struct(">Q")
_REST = Struct(">qB")
"""Of a job: its instant and its priority."""
_BUFFERED_ROWS = 2_000
_LEAST_ROOM = 16
"""With very many lanes the window is exceeded rather than read in crumbs."""
_READS_PER_CLEAR = 16
"""What has been read is deleted as a range, now and then: each range is one more that every read has to look at."""


class LaneStore:
    """All lanes of a partition. Writes are gathered, and are seen by every read."""

    def __init__(self, store: IndexStore, window: int) -> None:
        """`window`: how many jobs all lanes together keep in memory, about."""
        self._store = store
        self._window = window
        self._buffer: dict[bytes, bytes | None] = {}
        self._reads: dict[int, int] = {}
        """By open lane, the reads since what they took was cleared."""
        self._next_lane = 0
        store.clear(LANE_PREFIX)

    @property
    def room(self) -> int:
        """How many jobs a lane may keep in memory."""
        return max(min(_LEAST_ROOM, self._window), self._window // max(1, len(self._reads)))

    def open_lane(self) -> int:
        """A new lane; its number."""
        self._next_lane += 1
        self._reads[self._next_lane] = 0
        return self._next_lane

    def close_lane(self, lane: int) -> None:
        """A lane is empty and is forgotten."""
        if self._reads.pop(lane):
            self._flush()
            self._store.clear(LANE_PREFIX + _LANE.pack(lane))

    def put(self, lane: int, job: ReadyJob) -> None:
        """Puts a job into the table."""
        self._write(_row_key(lane, job), _REST.pack(job.at_ms, job.priority))

    def delete(self, lane: int, job: ReadyJob) -> None:
        """Takes a job out of the table."""
        self._write(_row_key(lane, job), None)

    def take(self, lane: int, after: ReadyJob, limit: int) -> list[ReadyJob]:
        """The first jobs behind `after`, in order, at most `limit`. Nobody asks for them again."""
        self._flush()
        prefix, behind = LANE_PREFIX + _LANE.pack(lane), _row_key(lane, after)
        rows = self._store.scan(prefix, behind, limit)
        self._reads[lane] += 1
        if self._reads[lane] > _READS_PER_CLEAR:
            self._store.clear(prefix, behind)
            self._reads[lane] = 1
        return [_job(key, value, after) for key, value in rows]

    def forget(self, lane: int, up_to: ReadyJob) -> None:
        """Clears what was taken, up to this job: its lane puts some of it here again."""
        self._flush()
        self._store.clear(LANE_PREFIX + _LANE.pack(lane), _row_key(lane, up_to))
        self._reads[lane] = 0

    def _write(self, key: bytes, value: bytes | None) -> None:
        self._buffer[key] = value
        if len(self._buffer) >= _BUFFERED_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._buffer:
            self._store.write(self._buffer.items())
            self._buffer = {}


def _row_key(lane: int, job: ReadyJob) -> bytes:
    return LANE_PREFIX + _LANE.pack(lane) + encode_numbers(job.key) + _SEQ.pack(job.seq) + job.job_id.encode()


def _job(row_key: bytes, value: bytes, neighbour: ReadyJob) -> ReadyJob:
    key, at = decode_numbers(row_key, len(LANE_PREFIX) + _LANE.size)
    (seq,) = _SEQ.unpack_from(row_key, at)
    at_ms, priority = _REST.unpack(value)
    job_id = row_key[at + _SEQ.size :].decode()
    return ReadyJob(key, seq, job_id, neighbour.band, neighbour.tenant, at_ms, priority)
