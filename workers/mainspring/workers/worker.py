"""The worker: one loop that talks to Kafka and never waits for a job."""

import logging
import threading
from typing import Any

from mainspring.schemas.bounds import RECORD_MAX_BYTES
from mainspring.schemas.codes import DeadLetterReason
from mainspring.schemas.common import Priority
from mainspring.schemas.dead_letters import DeadLetter
from mainspring.schemas.errors import RegistryError, UnreadableRecordError
from mainspring.schemas.signals import CancelAttempt, ClaimRefused, StartConfirmed
from mainspring.schemas.work import WorkOffered
from mainspring.workers.attempt import StopReason
from mainspring.workers.beat import Beater
from mainspring.workers.config import WorkerConfig, WorkerState, WorkerStatus
from mainspring.workers.holdings import Holdings
from mainspring.workers.inbox import OfferInbox, SignalInbox, StoppedWaitingError
from mainspring.workers.outbox import Outbox
from mainspring.workers.ports import REAL_PORTS, WorkerPorts
from mainspring.workers.registry import Registry
from mainspring.workers.reports import Reporter

__all__ = ["Worker"]

log = logging.getLogger(__name__)

IDLE_WAIT_S = 0.05
"""An idle loop waits for offers so long; an offer wakes it at once."""
BUSY_WAIT_S = 0.005
"""With attempts under way it looks at everything this often."""
QUIET_WAIT_S = 0.02
"""With long attempts under way and nothing else: a fourth of the wake-ups, and an offer still wakes it at once."""
QUIET_AFTER_S = 0.5
TICK_S = 0.05
"""How often time itself is looked at: a small part of the time that an offer is held."""
STOP_S = 3.0
"""How long what was told to stop at the end of a drain may take to do so."""


class Worker:
    """Takes offers of its queues, runs them, reports. `run` is its life; the other methods are safe from any thread.

    `ports`: the world that it lives in.
    """

    def __init__(self, config: WorkerConfig, registry: Registry, ports: WorkerPorts = REAL_PORTS) -> None:
        self._config = config
        self._registry = registry
        self._ports = ports
        self._clock = ports.clock
        self._reporter = Reporter(config.worker_id, ports.incarnation(), ports.clock.wall_ms)
        self._topics = {
            "attempts": config.topology.attempts.name,
            "logs": config.topology.logs.name,
            "dead-letters": config.topology.dead_letters.name,
        }
        self._lanes = {config.topology.work(queue, lane).name: lane for queue in config.queues for lane in Priority}
        self._measures = ports.measures(config.slots)
        self._executor = ports.runner(registry, config.slots)
        self._outbox = Outbox(config.connection, ports.producer, ports.clock.monotonic)
        self._holdings = Holdings(
            config=config,
            registry=registry,
            reporter=self._reporter,
            executor=self._executor,
            send=self._send,
            count=self._measures.offers,
        )
        self._beater = Beater(config, self._reporter, ports.beat_producer, ports.clock.monotonic)
        self._state = WorkerState.NEW
        self._draining = threading.Event()
        self._hurried = threading.Event()
        self._looped_at = self._clock.monotonic()
        self._news_at = 0.0
        self._tick_at = 0.0
        self._beat_at = 0.0
        self._drain_until = 0.0
        self._stop_until: float | None = None
        self._abandoned = 0
        self._offers: OfferInbox | None = None
        self._signals: SignalInbox | None = None

    @property
    def worker_id(self) -> str:
        """The id that signals are addressed to."""
        return self._config.worker_id

    @property
    def incarnation(self) -> str:
        """This life of the worker: new at every start."""
        return self._reporter.incarnation

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set or `drain()` is called, then drains. Raises what makes working impossible."""
        if self._state is not WorkerState.NEW:
            raise RuntimeError("a worker runs once: its incarnation must be new for every start; make another")
        self._state = WorkerState.STARTING
        try:
            self._start(stop)
            while not self._is_finished(stop):
                self._turn()
        except StoppedWaitingError:
            log.info("stopped before the cluster was ready")
        finally:
            self._close()
            self._state = WorkerState.STOPPED

    def drain(self) -> None:
        """Takes no new work; running attempts get `drain_ms`, then they are handed back and `run` returns."""
        self._draining.set()

    def hurry(self) -> None:
        """Drains without waiting for anything that runs."""
        self._hurried.set()
        self._draining.set()

    def status(self) -> WorkerStatus:
        """How it goes."""
        now = self._clock.monotonic()
        contact_at = self._beater.contact_at
        return WorkerStatus(
            worker_id=self.worker_id,
            incarnation=self.incarnation,
            state=self._state,
            slots=self._config.slots,
            busy=self._holdings.busy,
            running=self._executor.running,
            peak_running=self._executor.peak_running,
            overdue=self._executor.overdue,
            awaiting=len(self._holdings.awaiting),
            held=self._holdings.held,
            partitions=self._offers.partitions if self._offers else 0,
            loop_age_s=now - self._looped_at,
            contact_age_s=None if contact_at is None else now - contact_at,
            lost_s=0.0 if self._offers is None else self._offers.lost_s,
            abandoned=self._abandoned,
        )

    # The life.

    def _start(self, stop: threading.Event) -> None:
        config = self._config
        self._executor.start()
        self._beater.start()
        # Signals first: the answer to a claim must not come before somebody listens.
        self._signals = SignalInbox(
            config.connection,
            config.topology,
            config.worker_id,
            is_stopped=lambda: stop.is_set() or self._draining.is_set(),
            ports=self._ports,
        )
        instance_id = config.worker_id if config.static_member else None
        self._offers = OfferInbox(config.connection, config.topology, config.queues, self._ports, instance_id)
        self._state = WorkerState.RUNNING
        log.info("worker %s runs; handlers: %d, slots: %d", config.worker_id, len(self._registry), config.slots)

    def _is_finished(self, stop: threading.Event) -> bool:
        if self._state is WorkerState.RUNNING:
            if not (stop.is_set() or self._draining.is_set()):
                return False
            self._begin_drain()
        now = self._clock.monotonic()
        holdings = self._holdings
        if not holdings.attempts and not holdings.awaiting:
            return True
        if self._stop_until is None and (now >= self._drain_until or self._hurried.is_set()):
            log.warning("%d attempts are stopped and handed back", len(holdings.attempts))
            holdings.stop_all(StopReason.DRAINING)
            self._stop_until = now + STOP_S
        return self._stop_until is not None and now >= self._stop_until

    def _begin_drain(self) -> None:
        self._state = WorkerState.DRAINING
        self._drain_until = self._clock.monotonic() + self._config.drain_ms / 1000
        log.info("draining: %d attempts get %.1f s", len(self._holdings.attempts), self._config.drain_ms / 1000)
        self._holdings.drain()
        if self._offers is not None:
            self._offers.leave()

    def _turn(self) -> None:
        assert self._signals is not None  # _start() made both
        assert self._offers is not None
        holdings = self._holdings
        self._outbox.turn()
        self._beater.turn()
        wait_signals, wait_ends, wait_offers = self._waits()
        signals = self._signals.read(wait_signals)
        if signals:
            self._hear(signals)
        ended = self._executor.collect(0 if signals else wait_ends)
        if ended:
            now = self._clock.monotonic()
            self._measures.ended(ended, now)
            holdings.ended(ended, now)
        offers = self._offers.read(0 if signals or ended else wait_offers)
        now = self._looped_at = self._clock.monotonic()
        if offers:
            self._take(offers, now)
            self._offers.answered(offers, self._outbox.sent)
        if signals or ended or offers:
            self._news_at = now
        self._offers.settle(self._outbox.sent - self._outbox.pending)
        self._look_at_time(now)

    def _waits(self) -> tuple[float, float, float]:
        """How long to wait for signals, for ends and for offers: for the one that is most likely to come next."""
        if self._holdings.awaiting:
            return BUSY_WAIT_S, 0, 0
        if not self._executor.running:
            return 0, 0, IDLE_WAIT_S
        if self._clock.monotonic() - self._news_at >= QUIET_AFTER_S:
            return 0, 0, QUIET_WAIT_S
        return 0, BUSY_WAIT_S, 0

    def _look_at_time(self, now: float) -> None:
        if now >= self._tick_at:
            self._tick_at = now + TICK_S
            # Renewals are heard after `now` was read: a stall in between must not look like a lost lease.
            self._beater.turn()
            self._holdings.tick(now)
            self._beater.watch(self._holdings.attempts.values(), now)
            self._measures.turn(self.status())
        if now >= self._beat_at:
            self._beat_at = now + self._config.heartbeat_ms / 1000
            self._beater.beat(self._holdings.attempts.values(), now)

    def _hear(self, messages: list[Any]) -> None:
        now = self._clock.monotonic()
        holdings, incarnation = self._holdings, self.incarnation
        for signal in self._decoded(messages, (StartConfirmed, ClaimRefused, CancelAttempt)):
            if signal.incarnation != incarnation:
                continue  # to a former life of this id
            if isinstance(signal, StartConfirmed):
                holdings.clock_ahead_ms = self._clock.wall_ms() - signal.confirmed_at_ms
                holdings.confirmed(signal.starts, now)
            elif isinstance(signal, ClaimRefused):
                holdings.refused(signal.job_id, signal.attempt, now)
            else:
                holdings.cancelled(signal.job_id, signal.attempt, signal.reason, now)

    def _take(self, messages: list[Any], now: float) -> None:
        records: list[WorkOffered] = []
        lanes: list[Priority] = []
        for message in messages:
            for record in self._decoded([message], WorkOffered):
                records.append(record)
                lanes.append(self._lanes[message.topic()])
        self._holdings.offered(records, now, lanes=lanes)

    def _decoded(self, messages: list[Any], expected: Any) -> list[Any]:
        records = []
        decode = self._config.codec.decode
        for message in messages:
            try:
                record = decode(message.value() or b"")
                if not isinstance(record, expected):
                    raise UnreadableRecordError(  # noqa: TRY301  # both kinds of bad record take the same way out
                        DeadLetterReason.UNEXPECTED_TYPE, f"a {type(record).__name__} has no place on {message.topic()}"
                    )
                records.append(record)
            except UnreadableRecordError as error:
                self._bury(message, error)
            except RegistryError as error:
                # What was offered is offered again, and a claim without an answer is given up: nothing is lost.
                log.warning("a record cannot be read while the schema registry is away: %s", error)
        return records

    def _bury(self, message: Any, error: UnreadableRecordError) -> None:
        value = message.value() or b""
        log.error("%s[%d]@%d is put aside: %s", message.topic(), message.partition(), message.offset(), error)
        letter = DeadLetter(
            topic=message.topic(),
            partition=message.partition(),
            offset=message.offset(),
            key=message.key(),
            reason=error.reason,
            detail=error.detail,
            value=value[:RECORD_MAX_BYTES],
            value_bytes=len(value),
            recorded_by=self.worker_id,
            recorded_at_ms=self._clock.wall_ms(),
        )
        self._outbox.send(self._topics["dead-letters"], message.key() or b"", self._config.codec.encode(letter))

    def _send(self, role: str, record: Any) -> None:
        self._outbox.send(self._topics[role], record.job_id.encode(), self._config.codec.encode(record))

    def _close(self) -> None:
        """In the order that matters: no code runs, what is left is handed back, and nothing renews a lease any more."""
        holdings = self._holdings
        holdings.draining = True
        holdings.stop_all(StopReason.DRAINING)
        try:
            self._executor.shutdown(STOP_S)
        except Exception:
            log.exception("the executors did not end cleanly")
        holdings.ended(self._executor.collect(), self._clock.monotonic())
        self._abandoned = self._executor.running
        holdings.release_rest()
        left = self._outbox.flush(self._config.flush_ms / 1000)
        if left:
            log.error("%d reports could not be delivered; the leases of their attempts will expire", left)
        self._beater.close()
        for inbox in (self._offers, self._signals):
            if inbox is not None:
                inbox.close()
