"""What can go wrong with a record, and the root of what Mainspring raises.

::

    MainspringError                every part's own tree grows from here
    └── SchemaError                a record and its schema do not fit
        ├── UnreadableRecordError  bytes that are no record: for `dead-letters`
        ├── UnwritableRecordError  a value that the schema cannot hold
        └── RegistryError          the schema registry did not answer, or lacks a schema: ask again
"""

from mainspring.schemas.codes import DeadLetterReason

__all__ = ["MainspringError", "RegistryError", "SchemaError", "UnreadableRecordError", "UnwritableRecordError"]


class MainspringError(Exception):
    """Root of what Mainspring raises on purpose.

    Apart from it stand `CoreError` (a defect, and no answer to anyone) and `LocalKafkaError` (the embedded Kafka knows
    nothing of Mainspring).
    """


class SchemaError(MainspringError):
    """A record and its schema do not fit."""


class UnreadableRecordError(SchemaError):
    """Bytes from a topic that are no record of the language: for `dead-letters`, reading them again cannot help.

    `reason` tells whether they are broken (UNDECODABLE) or of a type that this version does not know (UNKNOWN_TYPE).
    """

    def __init__(self, reason: DeadLetterReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type["UnreadableRecordError"], tuple[DeadLetterReason, str]]:
        return type(self), (self.reason, self.detail)


class UnwritableRecordError(SchemaError):
    """A record with a value that its schema cannot hold. `field` is the path to it, `why` what was expected."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"cannot encode {field}: {why}")
        self.field = field
        self.why = why

    def __reduce__(self) -> tuple[type["UnwritableRecordError"], tuple[str, str]]:
        return type(self), (self.field, self.why)


class RegistryError(SchemaError):
    """The schema registry did not answer, or lacks a schema. The record may be fine: ask again, no dead letter."""
