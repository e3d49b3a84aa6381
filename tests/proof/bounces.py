"""What is done to brokers under a steady load, one fault after another, and what must hold after each."""

import itertools
import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from confluent_kafka import KafkaException

from mainspring.local import EmbeddedKafka
from mainspring.local.ports import free_ports
from mainspring.schemas import (
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobStarted,
    JobStatus,
    JobSubmitted,
    JobTimedOut,
)
from tests.proof.board import TERMINAL
from tests.proof.chronos import Chronos
from tests.proof.cluster import NODES, Cluster, Coordinates, SmallDisk
from tests.proof.site import Site, a_site
from tests.proof.steady import BATCH, SteadyLoad, steady_load

SCHEDULERS, WORKERS = ("s1", "s2"), ("w1", "w2")
PATIENCE_S = 180.0
"""A cluster that was half dead takes its time."""
SOME = 10
"""Jobs that end and occurrences that are fired between two steps: progress."""

_ASK_S = 5.0

LEASE_MS = 6_000
SLOTS = 32
EVERY_MS = (2_000, 2_500, 3_000, 4_000)
CRON_S = (2, 3, 5)
"""Of the schedules: a few fires a second, so that a slow machine keeps up with three brokers, too."""
WINDOW_MS = 150_000
"""How late a run may begin: two of three brokers are away for half a minute, and what was planned meanwhile follows."""
COPIES = {
    "topics": {"replication": 3, "min_isr": 2},
    "worker": {"lease_ms": LEASE_MS, "heartbeat_ms": LEASE_MS // 4},
}

END_OF: dict[type, JobStatus] = {
    JobCompleted: JobStatus.COMPLETED,
    JobFailed: JobStatus.FAILED,
    JobTimedOut: JobStatus.TIMED_OUT,
    JobCancelled: JobStatus.CANCELLED,
}


@dataclass(slots=True, kw_only=True)
class Bounces:
    """Faults of brokers, and the checks that follow each. `ports`: where processes tell of their health, by name."""

    site: Site
    cluster: Cluster
    chronos: Chronos
    load: SteadyLoad
    ports: dict[str, int] = field(default_factory=dict)
    audits: bool = True
    """Whether the log is verified after each fault, too, and not only at the end."""
    told: list[str] = field(default_factory=list)
    """A line for each fault."""

    # -- the faults --------------------------------------------------------------------------------------------------

    def bounce(self, what: str, find: Callable[[], int | None], how: signal.Signals) -> None:
        """Ends the broker that something depends on, lets the others go on without it, and starts it again."""
        with self._fault(f"{how.name} of {what}"):
            broker = self._found(find, what)
            self.cluster.send(broker, how)
            self._until(lambda: self.cluster.is_gone(broker), f"broker {broker} to end")
            self._until(lambda: find() not in {None, broker}, f"another broker to be {what}")
            self.progress()
            self.cluster.brokers.restart(broker)

    def two_down(self, first: Callable[[], int | None], down_s: float) -> None:
        """Kills two of three: nothing can be written, whoever writes is told, and all go on when they are back."""
        with self._fault("SIGKILL of two of three"):
            one = self._found(first, "the leader")
            two = one % NODES + 1
            aborts = {name: self.aborts(name) for name in SCHEDULERS}
            for broker in (one, two):
                self.cluster.brokers.kill(broker)
            before, refused = len(self.load.ends), self.load.undelivered
            since_s = time.monotonic()
            self._until(lambda: self.load.undelivered > refused, "the client to say that nothing is acknowledged")
            # One batch may have been acknowledged before, and be counted since.
            assert len(self.load.ends) <= before + BATCH, "a batch was acknowledged without a quorum"
            self._until(lambda: all(self.aborts(name) > aborts[name] for name in SCHEDULERS), "transactions to fail")
            self._until(lambda: all(self.unready(name) for name in SCHEDULERS), "the schedulers to be unready")
            reasons = {name: reason for name in self.ports if (reason := self.unready(name)) is not None}
            self._until(lambda: time.monotonic() >= since_s + down_s, f"{down_s:g} s to pass")
            for broker in (one, two):
                self.cluster.brokers.restart(broker)
        self.told.append(f"meanwhile not ready: {reasons}")

    def pause(self, what: str, find: Callable[[], int | None], seconds: float) -> None:
        """A broker stands still with its connections open, long enough to be replaced, and goes on."""
        with self._fault(f"SIGSTOP for {seconds:g} s of {what}"):
            broker = self._found(find, what)
            self.cluster.brokers.pause(broker)
            since_s = time.monotonic()
            try:
                self._until(lambda: time.monotonic() >= since_s + seconds, f"{seconds:g} s to pass")
            finally:
                self.cluster.brokers.resume(broker)

    def no_growth(self, what: str, find: Callable[[], int | None]) -> None:
        """The files of a broker cannot grow: it ends by itself, and comes back when they can."""
        with self._fault(f"no file of {what} may grow"):
            broker = self._found(find, what)
            self.cluster.refuse_writes(broker)
            self._until(lambda: self.cluster.is_gone(broker), f"broker {broker} to give up")
            self.progress()
            self.cluster.brokers.restart(broker)

    def disk_full(self, broker: int, disk: SmallDisk) -> None:
        """The disk of a broker is full: it ends by itself, and comes back when there is room."""

        def has_given_up() -> bool:
            disk.fill()
            return self.cluster.is_gone(broker)

        with self._fault(f"the disk of broker {broker} is full"):
            self._until(has_given_up, f"broker {broker} to give up")
            self.progress()
            disk.clear()
            self.cluster.brokers.restart(broker)

    # -- what they hit -----------------------------------------------------------------------------------------------

    def leader(self) -> int | None:
        """Which broker leads the busiest partition of `commands`."""
        return self.cluster.leader(self.site.topology.commands.name, self.load.busiest())

    def transaction_coordinator(self) -> int | None:
        """Which broker coordinates the transactions of the scheduler that owns the busiest partition."""
        try:
            owner = self.site.owners().get(self.load.busiest())
        except KafkaException:
            return None
        if owner is None:
            return None
        return self.cluster.coordinator(Coordinates.TRANSACTIONS, self.site.topology.transactional_id(owner))

    def group_coordinator(self) -> int | None:
        """Which broker coordinates the group of the schedulers."""
        return self.cluster.coordinator(Coordinates.GROUP, self.site.topology.group("scheduler"))

    # -- what must hold ----------------------------------------------------------------------------------------------

    def progress(self) -> None:
        """Returns when some more jobs of the load have been accepted, some have ended and some schedules have fired."""
        board = self.site.board
        counts = {kind: len(board.kinds[kind]) + SOME for kind in (JobSubmitted, JobCompleted)}
        fires = self.chronos.fired + SOME
        self._until(
            lambda: self.chronos.fired >= fires and all(len(board.kinds[kind]) >= n for kind, n in counts.items()),
            "jobs and schedules to go on",
        )

    def settle(self) -> None:
        """Returns when all copies are in sync and every job that was in the log has come to its own end."""
        self._until(self.cluster.is_whole, "every copy to be in sync")
        wanted = dict(self.load.ends)
        self._until(lambda: all(map(self.site.board.has_ended, wanted)), "every job that was submitted to end")
        self.assert_ends(wanted)

    def assert_ends(self, wanted: dict[str, JobStatus]) -> None:
        """Each job was accepted once and has one end, its own."""
        lives = self.site.board.lives
        wrong: dict[str, Sequence[str]] = {}
        for job_id, end in wanted.items():
            events = list(lives[job_id])
            ends = [END_OF[type(event)] for event in events if isinstance(event, TERMINAL)]
            if ends != [end] or sum(isinstance(event, JobSubmitted) for event in events) != 1:
                wrong[job_id] = [type(event).__name__ for event in events]
        assert wrong == {}

    def unready(self, name: str) -> str | None:
        """Why a process says that it is not ready; None where it is."""
        try:
            self._get(name, "readyz")
        except HTTPError as error:
            checks = json.loads(error.read())["checks"]
            return "; ".join(f"{check}: {reason}" for check, reason in checks.items() if reason != "ok")
        return None

    def aborts(self, name: str) -> float:
        """How many transactions a scheduler says were aborted, by its metrics."""
        lines = self._get(name, "metrics").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("mainspring_txn_aborts_total"))

    def _get(self, name: str, path: str) -> str:
        with urlopen(f"http://127.0.0.1:{self.ports[name]}/{path}", timeout=_ASK_S) as answer:
            return str(answer.read().decode())

    def finish(self) -> None:
        """Ends the load and the schedules. Every job has come to its own end, and every planned time has its run."""
        quiet_since_ms = self.chronos.be_quiet(1)
        self.load.finish()
        self.settle()
        self.chronos.finish()
        verdict = self.chronos.assert_nothing_was_missed_or_fired_twice()
        self.chronos.assert_the_log_agrees(Counter(self.load.ends.values()))
        ledger, board = self.site.ledger(), self.site.board
        confirmed = {(event.job_id, event.attempt) for event in board.kinds[JobStarted]}
        assert set(ledger.began) <= confirmed, "an attempt ran that was never confirmed"
        completed = {(event.job_id, event.attempt) for event in board.kinds[JobCompleted]}
        assert completed <= set(ledger.ended), "completed, but the handler has not written that it ended"
        late_ms = verdict.lateness_ms()
        quiet_ms = [run.begun_ms - target.due_ms for target, run in verdict.met if target.due_ms >= quiet_since_ms]
        self.told.append(
            f"{len(self.load.ends)} jobs, {dict(Counter(end.name for end in self.load.ends.values()))}, and "
            f"{len(verdict.met)} targets of {self.chronos.count} schedules: 0 lost, 0 missed; {self._repeated()} "
            f"side effects repeated; the client was told {self.load.undelivered} times that nothing "
            f"was acknowledged; schedules late by {late_ms[len(late_ms) // 2]:.0f} ms p50, {late_ms[-1]:.0f} ms at "
            f"most, {max(quiet_ms):.0f} ms at the end"
        )

    @contextmanager
    def _fault(self, what: str) -> Iterator[None]:
        """Progress before, all well after, and a line about it."""
        self.progress()
        began_ms, before = time.time() * 1_000, self._repeated()
        yield
        self.progress()
        self.settle()
        if self.audits:
            code, report = self.site.verify("--no-view")
            assert code == 0, report["findings"]
        repeated = self._repeated() - before
        still_ms = self._longest_standstill_ms(began_ms)
        self.told.append(f"{what}: nothing ended for {still_ms:.0f} ms, {repeated} side effects repeated")

    def _repeated(self) -> int:
        """Side effects that were begun once more than was asked for: a job that fails is to be tried again."""
        asked = {job_id: 1 for job_id, end in list(self.load.ends.items()) if end is JobStatus.FAILED}
        times = self.site.ledger().duplicates()
        return sum(count - 1 - asked.get(job_id, 0) for job_id, count in times.items())

    def summary(self) -> str:
        """All that is to be told, a line each."""
        return "\n  ".join(self.told)

    def _longest_standstill_ms(self, since_ms: float) -> float:
        ends = sorted(e.decided_at_ms for e in self.site.board.kinds[JobCompleted] if e.decided_at_ms >= since_ms)
        return max(float(after - before) for before, after in itertools.pairwise([since_ms, *ends]))

    def _found(self, find: Callable[[], int | None], what: str) -> int:
        self._until(lambda: find() is not None, f"{what} to be known")
        found = find()
        assert found is not None, f"{what} has just gone"
        return found

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        def is_so() -> bool:
            self.load.check()
            return condition()

        self.site.until(is_so, what, PATIENCE_S)


@contextmanager
def an_installation(
    brokers: EmbeddedKafka, directory: Path, schedules: int, *, audits: bool = True
) -> Iterator[Bounces]:
    """Two schedulers, two workers and a projector on a cluster, all data in three copies, under load and schedules."""
    with a_site(brokers.bootstrap, "bounced.", directory, COPIES) as site:
        names = (*SCHEDULERS, *WORKERS, "projector")
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        site.projector(**{"http.port": ports["projector"]})
        for name in SCHEDULERS:
            site.scheduler(name, **{"http.port": ports[name]})
        for name in WORKERS:
            site.worker(name, slots=SLOTS, **{"http.port": ports[name]})
        chronos = Chronos(site=site, count=schedules, every_ms=EVERY_MS, cron_s=CRON_S, window_ms=WINDOW_MS)
        chronos.begin()
        with steady_load(site) as load:
            yield Bounces(site=site, cluster=Cluster(brokers), chronos=chronos, load=load, ports=ports, audits=audits)
