"""What the engine needs of Kafka, the clock and chance: narrow enough that a simulated Kafka can take their place.

Plain values go in and out. Nothing here blocks without a bound, and every failure is one of `engine.errors`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from mainspring.processors.engine.errors import TransactionError

__all__ = [
    "Admin",
    "ChangelogReader",
    "Clock",
    "GroupMetadata",
    "Inputs",
    "Kafka",
    "Mark",
    "Output",
    "Pending",
    "Place",
    "Produce",
    "Randomness",
    "ReadResult",
    "RebalanceListener",
    "Received",
]

Place: TypeAlias = tuple[str, int]
"""One partition of one topic: `(topic, partition)`."""

GroupMetadata: TypeAlias = object
"""What proves to the broker that this process is a member of its group; opaque."""

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A committed offset: the next one to read, and a note of who committed it."""

    offset: int
    metadata: str = ""


class Received(Protocol):
    """One record as it was read, with the methods of the client library's message: reading copies nothing."""

    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult:
    """Records, in order within each place, and the places whose end was met, each with the offset of that end."""

    records: list[Received] = field(default_factory=list)
    ends: list[tuple[Place, int]] = field(default_factory=list)


class Pending(Protocol[T_co]):
    """An answer that may still be on its way."""

    def done(self) -> bool: ...
    def result(self) -> T_co:
        """The answer; call it only when `done`. Raises what went wrong."""
        ...


class RebalanceListener(Protocol):
    """Told of partitions that come and go, inside `Inputs.read` and nowhere else."""

    def on_assigned(self, partitions: Sequence[int]) -> None: ...
    def on_revoked(self, partitions: Sequence[int]) -> None: ...
    def on_lost(self, partitions: Sequence[int]) -> None: ...


class Inputs(Protocol):
    """The consumer of the input topics: one is subscribed to, the others are assigned by hand beside it."""

    def subscribe(self, topic: str, listener: RebalanceListener) -> None:
        """Joins the group for one topic."""
        ...

    def add(self, places: Sequence[Place]) -> None:
        """Takes places on, paused, until `start`. Only inside `on_assigned`."""
        ...

    def remove(self, places: Sequence[Place]) -> None:
        """Gives places up. Only inside `on_revoked` and `on_lost`."""
        ...

    def start(self, offsets: Mapping[Place, int]) -> None:
        """Reads these places from these offsets on, whatever was read or fetched of them before."""
        ...

    def hold(self, places: Sequence[Place]) -> None:
        """Reads nothing of these places until `start`."""
        ...

    def read(self, max_records: int, wait_ms: int, linger_ms: int = 0) -> ReadResult:
        """Waits up to `wait_ms` for a first record, then `linger_ms` for a full batch, and returns what is there.

        Raises `OffsetOutOfRangeError` when a place cannot be read from where it stands, `FatalKafkaError` when the
        consumer cannot go on.
        """
        ...

    def known_end(self, place: Place) -> int | None:
        """The end of a place as of the last answer to a fetch; nothing is asked. None: not known."""
        ...

    def lost_s(self) -> float:
        """For how many seconds no broker has been connected, as far as known; 0 while one is."""
        ...

    def owned(self) -> set[Place]:
        """The places that this consumer holds now."""
        ...

    def group(self) -> GroupMetadata:
        """Fresh proof of membership, for the next transaction."""
        ...

    def claim(self, marks: Mapping[Place, Mark]) -> Pending[None]:
        """Commits offsets outside a transaction, to note who owns the places. Answered inside later reads."""
        ...

    def close(self) -> None:
        """Leaves the group."""
        ...


class ChangelogReader(Protocol):
    """Reads changelog partitions, committed rows only, apart from the group."""

    def add(self, partition: int, offset: int) -> None: ...
    def remove(self, partition: int) -> None: ...
    def read(self, max_records: int, wait_ms: int) -> ReadResult:
        """Rows that are there, and the ends that were met: an end may be one that an open transaction makes."""
        ...

    def close(self) -> None: ...


class Admin(Protocol):
    """Questions to the broker. The answers come later; none of them is waited for."""

    def committed(self, places: Sequence[Place], *, stable: bool) -> Pending[dict[Place, Mark | None]]:
        """Committed offsets of the group. `stable`: `UnstableOffsetsError` while a transaction holds one of them."""
        ...

    def ends(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        """The offset after the last record, of open transactions too."""
        ...

    def beginnings(self, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        """The first offset that is still there."""
        ...

    def topic_id(self, topic: str) -> Pending[str]:
        """The identity of a topic: another one when it was deleted and made again."""
        ...

    def close(self) -> None: ...


class Produce(Protocol):
    """Hands one record to the producer: topic, value, key, partition (-1: by key).

    Raises `BufferError` when its queue is full, and what `Output.fault_of` understands when the record can be told to
    be wrong at once.
    """

    def __call__(self, topic: str, value: bytes | None, key: bytes | None, partition: int, /) -> None: ...


class Output(Protocol):
    """A transactional producer. Every method raises `TransactionError`, whose kind says what to do."""

    transactional_id: str
    produce: Produce
    noted: dict[Place, int]
    """After `flush`: the offsets of the records that `produce_noted` wrote in this transaction."""

    def produce_noted(self, topic: str, value: bytes | None, key: bytes | None, partition: int) -> None:
        """As `produce`, and the offset it gets is noted."""
        ...

    def trace(self, *, on: bool) -> None:
        """Whether every record's own failure is to be told apart, which costs time."""
        ...

    def fault_of(self, error: Exception) -> "TransactionError | None":
        """What an exception from `produce` means; None when it is not one of Kafka's."""
        ...

    def begin(self) -> None: ...
    def wait_for_room(self) -> None:
        """After a `BufferError`: lets some records go out."""
        ...

    def flush(self) -> None:
        """Returns when every record has been acknowledged; raises when one was not, or not in time."""
        ...

    def send_offsets(self, marks: Mapping[Place, Mark], group: GroupMetadata) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def is_suspect(self) -> bool:
        """Whether since `begin` a request may have been left behind in the network: then replace the producer."""
        ...

    def close(self) -> None: ...


class Kafka(Protocol):
    """Makes the clients."""

    def inputs(self) -> Inputs: ...
    def changelog(self) -> ChangelogReader:
        """For takeovers: rows come as fast as they can."""
        ...

    def follower(self) -> ChangelogReader:
        """For a standby: little is held in memory, and rows may gather at the broker for a moment."""
        ...

    def admin(self) -> Admin: ...
    def output(self, transactional_id: str) -> Output:
        """A producer that is ready to begin. Whoever held the id before is fenced, its open transaction ended."""
        ...

    def fence(self, transactional_id: str) -> None:
        """Ends whatever transaction is open under this id, and shuts its holder out."""
        ...


class Clock(Protocol):
    """The time. Nothing else in the engine asks for it."""

    def wall_ms(self) -> int: ...
    def mono_ms(self) -> int: ...
    def pause(self, delay_ms: int) -> None:
        """Lets time pass, between two tries of a call that failed."""
        ...


class Randomness(Protocol):
    """Chance. Nothing else in the engine asks for it."""

    def bits(self, count: int) -> int:
        """A whole number of `count` random bits."""
        ...
