"""A second look at transactions that seem torn: which of their events are there, and where."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from mainspring.log.source import LogSource, Place
from mainspring.log.verify.decoding import DeadPlaces, Reader
from mainspring.log.verify.digests import MASK
from mainspring.log.verify.findings import Check, Findings
from mainspring.schemas import EVENT_TYPES, Codec
from mainspring.schemas.common import Txn

__all__ = ["report_torn"]

LOOKED_AT = 1_000
"""Torn transactions that get a second look; on a log with more of them the first thousand tell enough."""

LISTED_PLACES, SHOWN = 5, 10

LOOKS, PAUSE_S = 3, 1.0
"""A transaction's markers reach its partitions one after another: a live log is given a moment to show the rest."""


@dataclass(slots=True)
class _Seen:
    size: int
    indexes: Counter[int] = field(default_factory=Counter)
    places: list[Place] = field(default_factory=list)

    def see(self, txn: Txn, place: Place) -> None:
        self.indexes[txn.index] += 1
        if len(self.places) < LISTED_PLACES:
            self.places.append(place)
        if txn.size != self.size:
            self.size = max(txn.size, self.size)

    @property
    def is_whole(self) -> bool:
        return len(self.indexes) == self.size and set(self.indexes) == set(range(self.size)) and not self.repeated

    @property
    def repeated(self) -> list[int]:
        return sorted(index for index, times in self.indexes.items() if times > 1)

    def told(self) -> str:
        missing = sorted(set(range(self.size)) - set(self.indexes))
        parts = [f"{len(self.indexes)} of {self.size} events are visible"]
        if missing:
            parts.append(f"missing {_list(missing)}")
        if self.repeated:
            parts.append(f"repeated {_list(self.repeated)}")
        parts.append("seen at " + ", ".join(map(str, self.places)))
        return "; ".join(parts)


def report_torn(
    source: LogSource,
    codec: Codec,
    torn: Iterable[int],
    findings: Findings,
    unverifiable: Counter[str],
    *,
    is_cut: bool,
) -> None:
    """Reports transactions that stay torn. Where the log's beginning was removed (`is_cut`) they may only be cut."""
    ids = list(torn)
    wanted = frozenset(ids[:LOOKED_AT])
    found: dict[int, _Seen] = {}
    for look in range(LOOKS if source.is_live else 1):
        if not wanted:
            return
        if look:
            time.sleep(PAUSE_S)
        found = {key: seen for key, seen in _look(source, codec, wanted).items() if not seen.is_whole}
        wanted = frozenset(found)
    if is_cut:
        unverifiable["transaction_past_retention"] += len(found)
        return
    for key, seen in sorted(found.items(), key=lambda item: item[1].places[0]):
        findings.add(Check.TORN_TRANSACTION, f"transaction {key}: {seen.told()}", place=seen.places[0])
    for _ in ids[LOOKED_AT:] if found else ():
        findings.add(Check.TORN_TRANSACTION, "not looked at one by one")


def _look(source: LogSource, codec: Codec, wanted: frozenset[int]) -> dict[int, _Seen]:
    topic = source.topology.events
    spans = source.spans([topic])
    found: dict[int, _Seen] = {}
    for partition in range(topic.partitions):
        reader = Reader(codec, topic, partition, Findings(), DeadPlaces())
        for batch in source.read(topic, partition, spans[topic.name, partition]):
            for raw in batch:
                event = reader.decode(raw)
                if type(event) not in EVENT_TYPES:
                    continue
                txn: Txn = event.txn  # type: ignore[union-attr]  # EVENT_TYPES holds the members of Event
                key = (txn.id & MASK) or 1
                if key in wanted:
                    found.setdefault(key, _Seen(txn.size)).see(txn, reader.place(raw.offset))
    return found


def _list(indexes: list[int]) -> str:
    shown = ", ".join(map(str, indexes[:SHOWN]))
    return f"{shown} and {len(indexes) - SHOWN} more" if len(indexes) > SHOWN else shown
