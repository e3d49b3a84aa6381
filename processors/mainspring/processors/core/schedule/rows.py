"""The rows of schedules, as the core needs them: a staged view, or dictionaries where nothing is to outlast it."""

from typing import Protocol

from mainspring.schemas.schedule import ScheduleSpec
from mainspring.schemas.tables import ScheduleState

__all__ = ["ScheduleRows", "ScheduleRowsInMemory"]


class ScheduleRows(Protocol):
    """The schedules of one partition as they will be once the current transaction is committed."""

    def schedule(self, schedule_id: str) -> ScheduleState | None:
        """The schedule's state, or None where it has no row."""
        ...

    def schedule_spec(self, schedule_id: str) -> ScheduleSpec | None:
        """The definition in force, or None where it has no row."""
        ...

    def put_schedule(self, schedule_id: str, state: ScheduleState | None) -> None:
        """Replaces the state row; None deletes it."""
        ...

    def put_schedule_spec(self, schedule_id: str, spec: ScheduleSpec | None) -> None:
        """Replaces the definition row; None deletes it."""
        ...


class ScheduleRowsInMemory:
    """Implements `ScheduleRows` with two dictionaries."""

    def __init__(self) -> None:
        self.states: dict[str, ScheduleState] = {}
        self.specs: dict[str, ScheduleSpec] = {}

    def schedule(self, schedule_id: str) -> ScheduleState | None:
        return self.states.get(schedule_id)

    def schedule_spec(self, schedule_id: str) -> ScheduleSpec | None:
        return self.specs.get(schedule_id)

    def put_schedule(self, schedule_id: str, state: ScheduleState | None) -> None:
        if state is None:
            self.states.pop(schedule_id, None)
        else:
            self.states[schedule_id] = state

    def put_schedule_spec(self, schedule_id: str, spec: ScheduleSpec | None) -> None:
        if spec is None:
            self.specs.pop(schedule_id, None)
        else:
            self.specs[schedule_id] = spec
