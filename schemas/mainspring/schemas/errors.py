"""What can go wrong with a record, as exceptions. `MainspringError` is the root of every exception of the project."""

from mainspring.schemas.codes import DeadLetterReason

__all__ = ["MainspringError", "RegistryError", "SchemaError", "UnreadableRecordError", "UnwritableRecordError"]


class MainspringError(Exception):
    """Root of every exception that Mainspring raises on purpose."""


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
