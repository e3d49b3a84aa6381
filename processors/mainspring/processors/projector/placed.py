"""An event on its way into the view."""

from dataclasses import dataclass

from mainspring.schemas.records import Event

__all__ = ["InapplicableEventError", "Placed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A decoded event and where it stands in the topic."""

    event: Event
    partition: int
    offset: int


class InapplicableEventError(Exception):
    """An event that does not follow from the state the view has; the scheduler never writes one."""
