"""Enums that are numbers in the log and in comparisons, and names to people."""

from enum import IntEnum

__all__ = ["NamedInt"]


class NamedInt(IntEnum):
    """Ordered and written as a number, shown by name."""

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)
