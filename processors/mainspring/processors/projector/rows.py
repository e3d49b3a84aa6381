"""From rows of the database to values."""

import json
from collections.abc import Mapping
from typing import Any

from mainspring.processors.projector.model import AttemptRecord, EventRecord
from mainspring.schemas.common import CauseSource

__all__ = ["attempt_of", "event_of"]


def event_of(row: Mapping[Any, Any]) -> EventRecord:
    """A row of `events`."""
    values = {str(name): value for name, value in row.items()}
    values["cause_source"] = CauseSource[values["cause_source"]]
    values["data"] = json.loads(values["data"])
    return EventRecord(**values)


def attempt_of(row: Mapping[Any, Any]) -> AttemptRecord:
    """A row of `attempts`."""
    return AttemptRecord(**{str(name): value for name, value in row.items()})
