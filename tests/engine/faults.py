"""Faults put between the engine and Kafka, at its ports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mainspring.processors.engine.errors import FaultKind, TransactionError
from mainspring.processors.engine.kafka import ClientOptions, ConfluentKafka
from mainspring.processors.engine.ports import GroupMetadata, Mark, Output, Place
from mainspring.topics import Connection, Topology

Hook = Callable[["FaultyOutput"], None]


@dataclass(slots=True)
class Faults:
    """What happens before and after each call of the producer; a hook may raise, or do something else meanwhile."""

    before: dict[str, Hook] = field(default_factory=dict)
    after: dict[str, Hook] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    produced: list[tuple[str, bytes | None]] = field(default_factory=list)
    """Topic and key of what the current transaction has produced."""

    def once(self, when: str, call: str, hook: Hook) -> None:
        """Does `hook` at the next such call only."""
        hooks = self.before if when == "before" else self.after

        def only_once(output: "FaultyOutput") -> None:
            del hooks[call]
            hook(output)

        hooks[call] = only_once


class FaultyOutput:
    """A producer whose calls go through the faults."""

    def __init__(self, inner: Output, faults: Faults) -> None:
        self.inner = inner
        self.transactional_id = inner.transactional_id
        self._faults = faults

    @property
    def noted(self) -> dict[Place, int]:
        return self.inner.noted

    def produce(self, topic: str, value: bytes | None, key: bytes | None, partition: int, /) -> None:
        self._faults.produced.append((topic, key))
        self.inner.produce(topic, value, key, partition)

    def produce_noted(self, topic: str, value: bytes | None, key: bytes | None, partition: int) -> None:
        self.inner.produce_noted(topic, value, key, partition)

    def trace(self, *, on: bool) -> None:
        self.inner.trace(on=on)

    def begin(self) -> None:
        self._faults.produced.clear()
        self._through("begin")

    def fault_of(self, error: Exception) -> TransactionError | None:
        return self.inner.fault_of(error)

    def wait_for_room(self) -> None:
        self.inner.wait_for_room()

    def flush(self) -> None:
        self._through("flush")

    def send_offsets(self, marks: Mapping[Place, Mark], group: GroupMetadata) -> None:
        self._through("send_offsets", marks, group)

    def commit(self) -> None:
        self._through("commit")

    def abort(self) -> None:
        self._through("abort")

    def is_suspect(self) -> bool:
        return self.inner.is_suspect()

    def close(self) -> None:
        self.inner.close()

    def _through(self, call: str, *arguments: Any) -> None:
        faults = self._faults
        faults.calls.append(call)
        if call in faults.before:
            faults.before[call](self)
        getattr(self.inner, call)(*arguments)
        if call in faults.after:
            faults.after[call](self)


class FaultyKafka(ConfluentKafka):
    """The real Kafka, its producers faulty."""

    def __init__(self, connection: Connection, options: ClientOptions, faults: Faults) -> None:
        super().__init__(connection, options)
        self._faults = faults

    def output(self, transactional_id: str) -> Any:
        return FaultyOutput(super().output(transactional_id), self._faults)


def client_options(topology: Topology, slot: str, **changes: Any) -> ClientOptions:
    """The options of a scheduler's clients."""
    given: dict[str, Any] = {
        "group": topology.group("scheduler"),
        "changelog": topology.scheduler_changelog.name,
        "client_id": topology.transactional_id(slot),
        "session_timeout_ms": 2_000,
    }
    return ClientOptions(**(given | changes))


def faulty(connection: Connection, topology: Topology, faults: Faults, **changes: Any) -> Callable[[str], FaultyKafka]:
    """What `Scheduler` takes as its Kafka."""
    return lambda slot: FaultyKafka(connection, client_options(topology, slot, **changes), faults)


def failing(kind: FaultKind, code: str = "INJECTED") -> Hook:
    """A hook that fails the call."""

    def fail(_: FaultyOutput) -> None:
        raise TransactionError(kind, code, "injected by the test")

    return fail
