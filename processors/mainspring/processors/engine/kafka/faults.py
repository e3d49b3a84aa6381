"""What the client library's errors ask for."""

from typing import Final

from confluent_kafka import KafkaError, KafkaException

from mainspring.processors.engine.errors import DeniedError, FatalKafkaError, FaultKind, TransactionError
from mainspring.processors.engine.ports import Place

__all__ = ["DENIED_CODES", "RECORD_CODES", "consumer_error", "fault_of", "kind_of"]

RECORD_CODES: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
"""Errors that a record brings on itself: where it goes, or how large it is."""

DENIED_CODES: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    }
)

FENCED_CODES: Final = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.FENCED_INSTANCE_ID}
)


def consumer_error(error: KafkaError, place: Place | None) -> Exception:
    """What to raise for an error of a consumer that does not pass."""
    where = "" if place is None else f" at {place[0]}[{place[1]}]"
    if error.code() in DENIED_CODES:
        return DeniedError(f"{error.str()}{where}")
    return FatalKafkaError(f"the consumer cannot go on{where}: {error.name()}: {error.str()}")


def fault_of(exception: KafkaException) -> TransactionError:
    """An exception of the client library, sorted by what it asks for."""
    error = exception.args[0]
    if not isinstance(error, KafkaError):
        return TransactionError(FaultKind.UNKNOWN, type(exception).__name__, str(exception))
    return TransactionError(kind_of(error), error.name(), error.str())


def kind_of(error: KafkaError) -> FaultKind:
    """What an error of the client asks for."""
    if error.code() in DENIED_CODES:
        return FaultKind.DENIED
    if error.code() in FENCED_CODES:
        return FaultKind.FENCED
    if error.fatal():
        return FaultKind.FATAL
    if error.txn_requires_abort():
        return FaultKind.RECORD if error.code() in RECORD_CODES else FaultKind.ABORT
    if error.code() in RECORD_CODES:
        return FaultKind.RECORD
    return FaultKind.RETRIABLE if error.retriable() else FaultKind.UNKNOWN
