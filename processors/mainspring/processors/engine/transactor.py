"""One transaction after another on one producer: what each failure asks for, and when the producer must be replaced."""

from collections.abc import Callable
from enum import Enum, auto

from mainspring.processors.engine.errors import (
    DeniedError,
    FatalKafkaError,
    FaultKind,
    NoProducerError,
    TransactionError,
)
from mainspring.processors.engine.ports import Clock, GroupMetadata, Kafka, Mark, Output, Place
from mainspring.telemetry import get_logger, metrics

__all__ = ["Outcome", "Transactor"]

_log = get_logger(__name__)

_RETRY_PAUSE_MS = 20
_TRACED_TRANSACTIONS = 50


class Outcome(Enum):
    """How a transaction ended."""

    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()
    """Whether it was committed must be read back."""


class Transactor:
    """Runs transactions under one id.

    Errors by class: a retriable one, the same call again until `patience_ms` have passed; one that asks for an abort,
    abort; a commit of unknown outcome, a new producer, which makes it known; a fatal one is raised as
    `FatalKafkaError`.
    """

    def __init__(self, kafka: Kafka, transactional_id: str, clock: Clock, patience_ms: int) -> None:
        self.transactional_id = transactional_id
        self._kafka = kafka
        self._clock = clock
        self._patience_ms = patience_ms
        self._traced = 0
        self._output = self._open()

    def run(
        self, write: Callable[[Output], None], marks: dict[Place, Mark], group: Callable[[], GroupMetadata]
    ) -> tuple[Outcome, TransactionError | None]:
        """One transaction: the offsets, and what `write` produces. An outcome other than COMMITTED has a reason."""
        if self._output.is_suspect():
            self._replace("late")
        output = self._output
        began_ms = self._clock.mono_ms()
        output.trace(on=self._traced > 0)
        try:
            output.begin()
            # First: this request is repeated at once while the markers of the transaction before are being written, the
            # one that adds partitions only after 20 ms.
            self._again(lambda: output.send_offsets(marks, group()))
            write(output)
            output.flush()
        except TransactionError as error:
            outcome, reason = self._abort(error)
        except Exception as error:
            fault = output.fault_of(error)
            outcome, reason = self._abort(fault or TransactionError(FaultKind.ABORT, "PROGRAM", repr(error)))
            if fault is None:
                raise
        else:
            outcome, reason = self._commit(output)
        self._traced = max(0, self._traced - 1)
        metrics.TXN_DURATION.labels(outcome=outcome.name.lower()).observe((self._clock.mono_ms() - began_ms) / 1_000)
        return outcome, reason

    def noted(self) -> dict[Place, int]:
        """Offsets of the records that the last transaction noted."""
        return self._output.noted

    def close(self) -> None:
        """Lets the producer go. No transaction is open between two `run`s."""
        self._output.close()

    def _commit(self, output: Output) -> tuple[Outcome, TransactionError | None]:
        try:
            self._again(output.commit)
        except TransactionError as error:
            if error.kind in (FaultKind.ABORT, FaultKind.RECORD):
                return self._abort(error)
            self._raise_fatal(error)
            _log.warning("commit of unknown outcome", code=error.code, detail=error.detail)
            metrics.TXN_ABORTS.labels(reason="unknown").inc()
            self._replace("unknown")
            return Outcome.UNKNOWN, error
        return Outcome.COMMITTED, None

    def _abort(self, reason: TransactionError) -> tuple[Outcome, TransactionError | None]:
        self._raise_fatal(reason)
        _log.warning("transaction aborted", code=reason.code, detail=reason.detail)
        metrics.TXN_ABORTS.labels(reason=reason.code).inc()
        if reason.code == "_INCONSISTENT":
            # Some record could not be delivered, and the client does not say which nor why unless it is asked to.
            self._traced = _TRACED_TRANSACTIONS
        output = self._output
        try:
            self._again(output.abort)
        except TransactionError as error:
            # An abort that overtakes the producer's own first request of the transaction breaks the producer, not more:
            # nobody asked for a commit, so a new one of the same id can take its place.
            if error.kind is not FaultKind.FATAL:
                self._raise_fatal(error)
            self._replace("abort")
        return Outcome.ABORTED, reason

    def _again(self, call: Callable[[], None]) -> None:
        deadline_ms = self._clock.mono_ms() + self._patience_ms
        while True:
            try:
                call()
            except TransactionError as error:
                if error.kind is not FaultKind.RETRIABLE or self._clock.mono_ms() >= deadline_ms:
                    raise
                self._clock.pause(_RETRY_PAUSE_MS)
            else:
                return

    def _replace(self, why: str) -> None:
        """A new producer with the same id: its start ends what the old one left open and shuts late requests out."""
        _log.warning("producer replaced", why=why)
        metrics.PRODUCER_ROTATIONS.labels(reason=why).inc()
        old, self._output = self._output, self._open()
        old.close()

    def _open(self) -> Output:
        deadline_ms = self._clock.mono_ms() + self._patience_ms
        while True:
            try:
                return self._kafka.output(self.transactional_id)
            except TransactionError as error:
                self._raise_fatal(error)
                if self._clock.mono_ms() >= deadline_ms:
                    raise NoProducerError(
                        f"no producer for {self.transactional_id} within {self._patience_ms} ms: {error}"
                    ) from error
                self._clock.pause(_RETRY_PAUSE_MS)

    def _raise_fatal(self, error: TransactionError) -> None:
        if error.kind is FaultKind.DENIED:
            raise DeniedError(f"{error.code}: {error.detail}") from error
        if error.kind not in (FaultKind.FATAL, FaultKind.FENCED):
            return
        if error.kind is FaultKind.FENCED:
            metrics.FENCED.labels(role="scheduler").inc()
        raise FatalKafkaError(
            f"the producer {self.transactional_id} cannot go on: {error.code}: {error.detail}. If another process runs "
            "under the same slot, give each its own; if the broker ended a transaction that had outlasted "
            "transaction_timeout_ms, look at its load or raise that"
        ) from error
