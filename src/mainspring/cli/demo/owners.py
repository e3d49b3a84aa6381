"""Which scheduler decides for which partitions, as the consumer group says: asked again and again in a thread."""

import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mainspring.cli.connect import admin_client, connection_of

if TYPE_CHECKING:
    from mainspring.settings import Settings

__all__ = ["Owners"]

_EVERY_S = 0.4
_ASK_S = 5.0


class Owners:
    """The partitions of `commands` by scheduler; the others of a partition go with it."""

    def __init__(self, settings: "Settings", names: Sequence[str]) -> None:
        topology = settings.topology()
        self._settings = settings
        self._group = topology.group("scheduler")
        self._by_client = {topology.transactional_id(name): name for name in names}
        self._owned: Mapping[str, tuple[int, ...]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name="demo-owners", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(_ASK_S)

    def of(self, name: str) -> tuple[int, ...]:
        """The partitions of one scheduler, as last heard."""
        return self._owned.get(name, ())

    def _ask_on(self) -> None:
        from confluent_kafka import KafkaException

        admin = admin_client(connection_of(self._settings))
        while not self._stop.wait(_EVERY_S):
            described = admin.describe_consumer_groups([self._group], request_timeout=_ASK_S)
            try:
                members = described[self._group].result().members
            except KafkaException:
                # A group in the middle of its first rebalance, or a coordinator that is not there yet.
                continue
            owned = {
                self._by_client[member.client_id]: tuple(
                    sorted(place.partition for place in member.assignment.topic_partitions)
                )
                for member in members
                if member.client_id in self._by_client
            }
            if any(owned.values()):
                self._owned = owned
