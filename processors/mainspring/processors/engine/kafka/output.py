"""The transactional producer."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mainspring.processors.engine.errors import FaultKind, TransactionError
from mainspring.processors.engine.kafka.consumers import positions
from mainspring.processors.engine.kafka.faults import RECORD_CODES, fault_of
from mainspring.processors.engine.kafka.logs import LibraryLog, library_logger
from mainspring.processors.engine.kafka.timed import TimedCalls
from mainspring.processors.engine.ports import GroupMetadata, Mark, Place, Produce

__all__ = ["KafkaOutput"]

R = TypeVar("R")


_CALL_S = 5.0
_STUCK_S = 2.0
"""How much longer than it was given a call may take before it counts as one that never comes back."""
_LOST_LINK = ("FAIL", "REQTMOUT")


class KafkaOutput:
    """A transactional producer, ready to begin."""

    produce: Produce

    def __init__(self, config: dict[str, Any], transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.noted: dict[Place, int] = {}
        self._failed: KafkaError | None = None
        self._stuck = False
        self._timed = TimedCalls(f"offsets of {transactional_id}")
        self._links = _LinkLog(transactional_id)
        self._producer = Producer(config, logger=self._links.logger)
        self.trace(on=False)
        try:
            self._call(self._producer.init_transactions, _CALL_S)
        except BaseException:
            self.close()
            raise

    def trace(self, *, on: bool) -> None:
        # Untraced records go straight into the client library, without a frame or a callback of ours.
        self.produce = self._produce_traced if on else cast(Produce, self._producer.produce)

    def produce_noted(self, topic: str, value: bytes | None, key: bytes | None, partition: int) -> None:
        self._producer.produce(topic, value, key, partition, on_delivery=self._note)

    def begin(self) -> None:
        self._producer.poll(0)
        self._links.lost = False
        self._failed = None
        self.noted = {}
        self._call(self._producer.begin_transaction)

    def fault_of(self, error: Exception) -> TransactionError | None:
        return fault_of(error) if isinstance(error, KafkaException) else None

    def wait_for_room(self) -> None:
        self._producer.poll(0.05)

    def flush(self) -> None:
        left = self._call(self._producer.flush, _CALL_S)
        if self._failed is not None:
            code = self._failed.code()
            kind = FaultKind.RECORD if code in RECORD_CODES else FaultKind.ABORT
            raise TransactionError(kind, self._failed.name(), self._failed.str())
        if left:
            raise TransactionError(FaultKind.ABORT, "FLUSH", f"{left} records were not acknowledged within {_CALL_S} s")

    def send_offsets(self, marks: Mapping[Place, Mark], group: GroupMetadata) -> None:
        # The client library keeps to no timeout here when the group's coordinator went and came back (librdkafka#5456).
        send = partial(self._producer.send_offsets_to_transaction, positions(marks), group, _CALL_S)
        try:
            self._call(self._timed.run, send, _CALL_S + _STUCK_S)
        except TimeoutError as error:
            self._stuck = True
            raise TransactionError(FaultKind.ABORT, "STUCK", "sending the offsets never ended") from error

    def commit(self) -> None:
        self._call(self._producer.commit_transaction, _CALL_S)

    def abort(self) -> None:
        if self._stuck:
            raise TransactionError(FaultKind.UNKNOWN, "STUCK", "a call that never ended holds this producer")
        self._call(self._producer.abort_transaction, _CALL_S)

    def is_suspect(self) -> bool:
        self._producer.poll(0)
        return self._links.lost

    def close(self) -> None:
        # Not the client library's `close`: it would abort what is open and wait for the broker's answer for ever.
        # Nothing is open here, or another producer of the same id has ended it. To let go of it is enough.
        self.produce = _produce_nothing
        self._timed.close()
        del self._producer

    def _produce_traced(self, topic: str, value: bytes | None, key: bytes | None, partition: int, /) -> None:
        self._producer.produce(topic, value, key, partition, on_delivery=self._check)

    def _check(self, error: KafkaError | None, _: "Message[bytes, bytes]") -> None:
        # What was purged by the abort says nothing of the record.
        if error is not None and self._failed is None:
            self._failed = error

    def _note(self, error: KafkaError | None, message: "Message[bytes, bytes]") -> None:
        if error is not None:
            self._check(error, message)
            return
        offset = message.offset()
        if offset is not None:
            self.noted[str(message.topic()), int(message.partition() or 0)] = offset

    def _call(self, method: Callable[..., R], *arguments: object) -> R:
        try:
            return method(*arguments)
        except KafkaException as error:
            raise fault_of(error) from error
        except SystemError as error:
            # So a fatal error shows when it comes while the client library is in the middle of its callbacks.
            if isinstance(error.__cause__, KafkaException):
                raise fault_of(error.__cause__) from error
            raise


def _produce_nothing(_topic: str, _value: bytes | None, _key: bytes | None, _partition: int, /) -> None:
    raise TransactionError(FaultKind.UNKNOWN, "CLOSED", "this producer has been closed")


class _LinkLog(LibraryLog):
    """Listens to the producer's log lines for connections that broke and requests that timed out.

    Only they tell in time: the statistics come too late, and a request that was left behind in the network may end a
    later transaction of the same producer.
    """

    def __init__(self, transactional_id: str) -> None:
        super().__init__(logging.DEBUG)
        self.lost = False
        self.logger = library_logger(transactional_id, self)

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if any(word in line for word in _LOST_LINK):
            self.lost = True
        super().emit(record)
