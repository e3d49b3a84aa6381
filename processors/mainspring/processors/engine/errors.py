"""What can go wrong around a transaction, sorted by what is to be done about it.

::

    MainspringError
    └── EngineError
        ├── TransactionError           a call of the producer failed; its `kind` says what that asks for
        ├── RecordError                an input cannot be applied: it goes to `dead-letters`
        ├── UnstableOffsetsError       ask again: a transaction that is not over holds a committed offset
        ├── FatalKafkaError            build the engine anew from what is committed
        └── ConfigurationError         only a person can help
            ├── DeniedError            … with a right that is missing
            ├── OffsetOutOfRangeError  … records were deleted before they were read
            ├── TopicReplacedError     … a topic was deleted and made again
            └── BrokenPromiseError     … offsets and tables do not belong together
"""

from enum import StrEnum

from mainspring.processors.engine.ports import Place, Received
from mainspring.schemas.errors import MainspringError

__all__ = [
    "BrokenPromiseError",
    "ConfigurationError",
    "DeniedError",
    "EngineError",
    "FatalKafkaError",
    "FaultKind",
    "OffsetOutOfRangeError",
    "RecordError",
    "TopicReplacedError",
    "TransactionError",
    "UnstableOffsetsError",
]


class EngineError(MainspringError):
    """Root of what the engine raises."""


class FaultKind(StrEnum):
    """What a failed call asks for."""

    RETRIABLE = "retriable"
    """The same call again."""
    ABORT = "abort"
    """Abort the transaction, go back, and do it again."""
    RECORD = "record"
    """A record that was written is at fault, whoever sends it: find out which input leads to it."""
    FATAL = "fatal"
    """This producer is broken."""
    FENCED = "fenced"
    """This producer was shut out by a newer one of the same name."""
    DENIED = "denied"
    """Access is denied: a person must grant it."""
    UNKNOWN = "unknown"
    """Nothing is known of the outcome."""


class TransactionError(EngineError):
    """A call of the producer failed. `code` is the name that Kafka gives the error."""

    def __init__(self, kind: FaultKind, code: str, detail: str) -> None:
        super().__init__(f"{code} ({kind}): {detail}")
        self.kind = kind
        self.code = code
        self.detail = detail


class RecordError(EngineError):
    """An input cannot be applied, for a reason of its own. `record` is None while it is not known which one."""

    def __init__(self, record: Received | None, detail: str) -> None:
        where = "one of the batch" if record is None else f"{record.topic()}[{record.partition()}]@{record.offset()}"
        super().__init__(f"{where}: {detail}")
        self.record = record
        self.detail = detail


class UnstableOffsetsError(EngineError):
    """A transaction that is not over holds the committed offset of one of the places."""


class FatalKafkaError(EngineError):
    """A client cannot go on. A new one, after everything was restored, can: the process may start over."""


class NoProducerError(FatalKafkaError):
    """No producer could be had for as long as one is waited for: the brokers are away. They may come back."""


class ConfigurationError(EngineError):
    """Something must be changed by a person before this can work. Starting over does not help."""


class DeniedError(ConfigurationError):
    """The cluster denies this process something that it needs."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            f"the cluster denies access: {detail}. `mainspring topics acls` prints the rights that each role needs; "
            "check them and the credentials"
        )


class OffsetOutOfRangeError(ConfigurationError):
    """A place cannot be read from where it stands: its records were deleted before they were read."""

    def __init__(self, place: Place, detail: str) -> None:
        topic, partition = place
        super().__init__(
            f"{topic}[{partition}] cannot be read from where it stands: {detail}. Records were deleted before they "
            "were processed (retention too short, or the topic was made again), and skipping them would lose jobs in "
            "silence. Raise the topic's retention; then decide from which offset to go on, and set it by hand."
        )
        self.place = place


class TopicReplacedError(ConfigurationError):
    """A topic is not the one that this process began with."""

    def __init__(self, topic: str, before: str, after: str) -> None:
        super().__init__(
            f"{topic} was deleted and made again under this process (its id was {before}, is {after}): to go on from "
            "the old one's offsets would skip what the new one has before them. Let no scheduler run; then restore the "
            "topic with its offsets from a copy, or begin with another prefix and submit again what has not ended "
            "(`mainspring log state` tells, from the events)."
        )
        self.topic = topic


class BrokenPromiseError(ConfigurationError):
    """Offsets and tables do not belong together. Going on would lose jobs or run them twice."""
