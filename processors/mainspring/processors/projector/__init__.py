"""The projector: folds `events` into a view in SQLite or PostgreSQL; `view` reads it."""

from typing import TYPE_CHECKING, Any

from mainspring.processors.projector.config import ProjectorConfig, Retention
from mainspring.processors.projector.errors import (
    ProjectorError,
    ViewAbsentError,
    ViewBusyError,
    ViewMismatchError,
    ViewPositionError,
    ViewUrlError,
)
from mainspring.processors.projector.status import PartitionStatus, ProjectorStatus

if TYPE_CHECKING:
    from mainspring.processors.projector.projector import Projector, run_projector

__all__ = [
    "PartitionStatus",
    "Projector",
    "ProjectorConfig",
    "ProjectorError",
    "ProjectorStatus",
    "Retention",
    "ViewAbsentError",
    "ViewBusyError",
    "ViewMismatchError",
    "ViewPositionError",
    "ViewUrlError",
    "run_projector",
]


def __getattr__(name: str) -> Any:
    # The writer brings SQLAlchemy along. Who reads the log needs this package's errors and forms, and has no SQL.
    if name not in {"Projector", "run_projector"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mainspring.processors.projector import projector

    return getattr(projector, name)
