"""Seeded faults of the product, patched in where parts meet: what would an error look like, and who would notice?

The product has no switch for any of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mainspring.processors.core import PartitionCore
from mainspring.processors.core.index.lanes import LaneStore
from mainspring.processors.core.job import decide_commands, decide_reports, decide_timers
from mainspring.processors.core.job.decision import NOTHING
from mainspring.processors.core.ready import _Tenant
from mainspring.processors.engine import processing
from mainspring.processors.engine.ports import GroupMetadata, Pending, Place
from mainspring.processors.engine.standby import Standby
from mainspring.processors.engine.takeover import Takeover
from mainspring.processors.engine.transactor import Outcome, Transactor
from mainspring.processors.scheduler.program import SchedulerProgram
from mainspring.schemas.common import ConfirmedStart, JobStatus
from mainspring.workers import leases
from mainspring.workers.attempt import StopReason
from mainspring.workers.holdings import Holdings
from tests.sim.faults import Menu
from tests.sim.kafka.membership import GroupToken
from tests.sim.kafka.ports import SimAdmin, SimInputs
from tests.sim.kafka.producer import SimOutput
from tests.sim.load import LoadShape
from tests.sim.mutant import SECONDS, Mutant, Patch
from tests.sim.process import SimClock
from tests.sim.schedule_mutants import SCHEDULE_MUTANTS
from tests.sim.worker_node import WorkerShape
from tests.sim.world import SECOND

__all__ = ["MUTANTS"]


def _offsets_outside(patch: Patch) -> None:
    patch(SimOutput, "send_offsets", lambda *_: None)


def _inputs_uncommitted(patch: Patch) -> None:
    def add(self: SimInputs, places: Sequence[Place]) -> None:
        for place in places:
            self._fetcher.add(place, 0, active=False, committed=False)

    patch(SimInputs, "add", add)


def _no_rewind(patch: Patch) -> None:
    original = processing.Processing._rewind

    def rewind(self: processing.Processing, partitions: list[Any], now: Any) -> None:
        inputs, self._inputs = self._inputs, _Deaf()  # type: ignore[assignment]  # a stand-in for one call
        try:
            original(self, partitions, now)
        finally:
            self._inputs = inputs

    patch(processing.Processing, "_rewind", rewind)


class _Deaf:
    def start(self, offsets: Mapping[Place, int]) -> None:
        """Does nothing."""


def _no_proof(patch: Patch) -> None:
    def group(self: SimInputs) -> GroupMetadata:
        return GroupToken(self._settings.group, -1, "")

    patch(SimInputs, "group", group)


def _rows_outside(patch: Patch) -> None:
    original = SimOutput._append

    def append(self: SimOutput, pid: int, epoch: int, place: Place, batch: Any) -> int:
        if place[0].endswith("changelog"):
            return self._broker.log(place).append(batch)
        return original(self, pid, epoch, place, batch)

    patch(SimOutput, "_append", append)


def _restore_to_stable_end(patch: Patch) -> None:
    def ends(self: SimAdmin, places: Sequence[Place]) -> Pending[dict[Place, int]]:
        return self._ask(lambda: {place: self._broker.log(place).stable for place in places})

    patch(SimAdmin, "ends", ends)


def _any_token(patch: Patch) -> None:
    patch(decide_reports, "_is_confirmed", lambda *_: True)


def _submitted_again(patch: Patch) -> None:
    original = PartitionCore._submit

    def submit(self: PartitionCore, command: Any, cause: Any, now: Any) -> None:
        rows, self._rows = self._rows, _Forgetful(self._rows)
        try:
            original(self, command, cause, now)
        finally:
            self._rows = rows

    patch(PartitionCore, "_submit", submit)


class _Forgetful:
    def __init__(self, rows: Any) -> None:
        self.put_state, self.put_spec, self.spec = rows.put_state, rows.put_spec, rows.spec

    def state(self, job_id: str) -> None:
        """Knows nobody."""


def _fast_clock(patch: Patch) -> None:
    original = SimClock.wall_ms
    patch(SimClock, "wall_ms", lambda self: original(self) + 20_000)


def _deaf_to_cancels(patch: Patch) -> None:
    original = decide_commands.decide_cancel

    def decide_cancel(state: Any, command: Any, context: Any) -> Any:
        if state is not None and state.status is JobStatus.RUNNING:
            return NOTHING
        return original(state, command, context)

    from mainspring.processors.core.job import decide

    patch(decide, "decide_cancel", decide_cancel)


def _local_table_trusted(patch: Patch) -> None:
    original = Takeover._restore

    def restore(self: Takeover, now: Any) -> bool:
        if self.table is not None and self.table.offset:
            self._replay.reached = max(self._replay.reached, self._end)
        return original(self, now)

    patch(Takeover, "_restore", restore)


def _deletions_not_followed(patch: Patch) -> None:
    original = Standby._take

    def take(self: Standby, number: int, records: Sequence[Any], now: Any) -> None:
        kept = [record for record in records if record.value() is not None]
        if kept:
            original(self, number, kept, now)

    patch(Standby, "_take", take)


def _late_ignored(patch: Patch) -> None:
    patch(SimOutput, "is_suspect", lambda _: False)


def _unknown_is_committed(patch: Patch) -> None:
    original = Transactor._commit

    def commit(self: Transactor, output: Any) -> Any:
        outcome, error = original(self, output)
        return (Outcome.COMMITTED, None) if outcome is Outcome.UNKNOWN else (outcome, error)

    patch(Transactor, "_commit", commit)
    patch(Transactor, "noted", lambda _: _Anything())


class _Anything(dict[Place, int]):
    def __missing__(self, key: Place) -> int:
        return 0


def _unknown_is_aborted(patch: Patch) -> None:
    original = Transactor._commit

    def commit(self: Transactor, output: Any) -> Any:
        outcome, error = original(self, output)
        return (Outcome.ABORTED, error) if outcome is Outcome.UNKNOWN else (outcome, error)

    patch(Transactor, "_commit", commit)


def _leases_for_ever(patch: Patch) -> None:
    patch(PartitionCore, "expire_leases", lambda *_: [])


def _leases_without_barrier(patch: Patch) -> None:
    original = PartitionCore.tick

    def tick(self: PartitionCore, now: Any, *is_over: Any) -> None:
        original(self, now, *is_over)
        self.expire_leases(now, now)

    patch(PartitionCore, "tick", tick)


def _retries_forgotten(patch: Patch) -> None:
    original = decide_timers.retry_scheduled

    def retry_scheduled(*given: Any, **named: Any) -> Any:
        return replace(original(*given, **named), retries=0)

    patch(decide_reports, "retry_scheduled", retry_scheduled)


def _started_unconfirmed(patch: Patch) -> None:
    original = Holdings._fill

    def fill(self: Holdings, now: float, *, free_slot: bool) -> None:
        before = set(self.awaiting)
        original(self, now, free_slot=free_slot)
        for job_id in [each for each in self.awaiting if each not in before]:
            self._run([self.awaiting.pop(job_id)])

    patch(Holdings, "_fill", fill)


def _refusal_believed(patch: Patch) -> None:
    def refused(self: Holdings, job_id: str, attempt: int, now: float) -> None:
        self.confirmed([ConfirmedStart(job_id=job_id, attempt=attempt)], now)

    patch(Holdings, "refused", refused)


def _handed_back_at_once(patch: Patch) -> None:
    original = Holdings.stop_all

    def stop_all(self: Holdings, reason: StopReason) -> None:
        original(self, reason)
        for attempt in list(self.attempts.values()):
            self._release(attempt.job_id, attempt.number)

    patch(Holdings, "stop_all", stop_all)


def _no_heartbeats(patch: Patch) -> None:
    def beats(attempts: Iterable[Any], **_: Any) -> Iterator[Any]:
        return iter(())

    patch(leases, "beats", beats)


def _event_forgotten(patch: Patch) -> None:
    original = SchedulerProgram._events

    def events(self: SchedulerProgram, outputs: Any, txn_id: int, send: Any) -> None:
        def lossy(topic: str, value: bytes | None, key: bytes | None, number: int) -> None:
            if txn_id % 7:
                send(topic, value, key, number)

        original(self, outputs, txn_id, lossy)

    patch(SchedulerProgram, "_events", events)


def _stops_at_once(patch: Patch) -> None:
    patch(Takeover, "_may_be_outdated", lambda _: False)


def _lease_revived(patch: Patch) -> None:
    def renew(attempts: Iterable[Any], sent_at: float, arrived_at: float, lease_s: float) -> None:
        for attempt in attempts:
            attempt.lease_from = max(attempt.lease_from, sent_at)

    patch(leases, "renew", renew)


def _lanes_forgotten(patch: Patch) -> None:
    patch(LaneStore, "forget", lambda *_: None)
    patch(_Tenant, "_look_behind", lambda *_: None)


_DEATHS = Menu(kill_per_step=0.03, lost_disks=0.3)
_CUTS = Menu(cut_per_step=0.02)
_LATE = Menu(late=0.3, kills=0.5)
_EVICTIONS = Menu(stops=5, kills=3, tails=0.02)
_MOVES = Menu(stops=10, evictions=6, slow_markers=0.5)
_NAPS_IN_REBALANCES = Menu(pause_per_step=0.02, evictions=2, stops=2)
_SLEEPS = Menu(pauses=4, pause_per_step=0.003)
_SILENCES = Menu(worker_pauses=4, worker_cuts=4)
_DRAINS = Menu(drains=4)
_HELD_UP = Menu(worker_cuts=6, slow_markers=0.3)
_CROWD = {"schedulers": 3, "partitions": 4}
_FOLLOWED = {"on_disk": True, "standby": True, "schedulers": 3, "partitions": 4, "history_max_count": 8}
_BLIND = {"transaction_timeout_ms": 60_000, "session_timeout_ms": 3_000, "schedulers": 3, "partitions": 2}
_LASTING = {"patience_ms": 1_000, "session_timeout_ms": 30_000}
_ASTRAY = {"load": LoadShape(jobs=100, span=SECONDS * SECOND, retry=0.5, poison=0.3)}
_LONG = {"workers": 3, "load": LoadShape(jobs=60, span=SECONDS * SECOND, long=0.5, long_ms=12_000)}
_LEAVING = {
    "workers": 3,
    "worker": WorkerShape(drain_ms=500),
    "load": LoadShape(jobs=100, span=SECONDS * SECOND, long=0.5),
}
_BUSY = {
    "schedulers": 1,
    "workers": 3,
    "max_batch": 1,
    "session_timeout_ms": 60_000,
    "worker": WorkerShape(slots=8, lease_ms=6_000, heartbeat_ms=1_800),
    "load": LoadShape(jobs=150, span=SECONDS * SECOND, bursts=8, long_ms=9_000, long=0.5),
}
_HERD = {
    "partitions": 1,
    "worker": WorkerShape(slots=4),
    "load": LoadShape(jobs=150, span=SECONDS * SECOND, alike=0.95),
}

MUTANTS: tuple[Mutant, ...] = (
    Mutant("offsets are sent outside of the transaction", _offsets_outside, "offsets with outputs"),
    Mutant("inputs are read uncommitted", _inputs_uncommitted, "log verify", _DEATHS, _ASTRAY),
    Mutant("an aborted batch is not read again", _no_rewind, "no command lost", _EVICTIONS, _CROWD, 90),
    Mutant("offsets are sent without proof of membership", _no_proof, "one verdict per input", _SLEEPS),
    Mutant("rows are written outside of the transaction", _rows_outside, "BrokenPromiseError"),
    Mutant("a restore ends at the stable end", _restore_to_stable_end, "BrokenPromiseError", _MOVES, _BLIND),
    Mutant("anybody's report counts", _any_token, "accepted token", _SILENCES, _LONG),
    Mutant("a submit is accepted again", _submitted_again, "revision contiguous"),
    Mutant("the clock is wrong by twenty seconds", _fast_clock, "never early"),
    Mutant("a running job ignores cancels", _deaf_to_cancels, "no command lost"),
    Mutant("the local table is trusted without its tail", _local_table_trusted, "BrokenPromiseError"),
    Mutant("a standby follows no deletions", _deletions_not_followed, "disk is the changelog", shape=_FOLLOWED),
    Mutant("a suspicious producer is not replaced", _late_ignored, "offsets with outputs", _LATE),
    Mutant("an unknown outcome is taken for committed", _unknown_is_committed, "disk is the changelog", _CUTS),
    Mutant(
        "an unknown outcome is taken for aborted", _unknown_is_aborted, "one verdict per input", _CUTS, _LASTING, 90
    ),
    Mutant("leases never run out", _leases_for_ever, "all ends", Menu(worker_kills=1)),
    Mutant(
        "leases run out whatever is still to be read",
        _leases_without_barrier,
        "never twice at once",
        Menu(pauses=4),
        _BUSY,
        60,
    ),
    Mutant("retries are not counted", _retries_forgotten, "all ends"),
    Mutant("a worker starts what was not confirmed", _started_unconfirmed, "runs only what it holds"),
    Mutant("a refusal is taken for a confirmation", _refusal_believed, "runs only what it holds"),
    Mutant(
        "what is told to stop is handed back at once", _handed_back_at_once, "never twice at once", _DRAINS, _LEAVING
    ),
    Mutant("a worker sends no heartbeats", _no_heartbeats, "all ends"),
    Mutant("an event is forgotten", _event_forgotten, "revision contiguous"),
    Mutant(
        "a takeover stops at the first disagreement", _stops_at_once, "BrokenPromiseError", _NAPS_IN_REBALANCES, _CROWD
    ),
    Mutant("a heartbeat after silence revives a lease", _lease_revived, "runs only what it holds", _HELD_UP),
    Mutant("a deep lane counts as empty too soon", _lanes_forgotten, "all ends", Menu(), _HERD),
    *SCHEDULE_MUTANTS,
)
