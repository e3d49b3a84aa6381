"""The projector: folds `events` into a view in SQLite or PostgreSQL; `view` reads it."""

from mainspring.processors.projector.config import ProjectorConfig, Retention
from mainspring.processors.projector.errors import (
    ProjectorError,
    ViewAbsentError,
    ViewBusyError,
    ViewMismatchError,
    ViewPositionError,
    ViewUrlError,
)
from mainspring.processors.projector.projector import Projector, run_projector
from mainspring.processors.projector.status import PartitionStatus, ProjectorStatus

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
