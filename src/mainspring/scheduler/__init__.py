"""The facade: a whole scheduler, embedded or connected, behind one object on asyncio."""

from mainspring.client.info import JobInfo
from mainspring.scheduler.errors import (
    FacadeError,
    NotStartedError,
    ProcessorDiedError,
    SchedulerStoppedError,
)
from mainspring.scheduler.facade import JobScheduler, TransitionCallback
from mainspring.scheduler.recurring import RecurringSchedule
from mainspring.scheduler.transition import JobListener, Transition

__all__ = [
    "FacadeError",
    "JobInfo",
    "JobListener",
    "JobScheduler",
    "NotStartedError",
    "ProcessorDiedError",
    "RecurringSchedule",
    "SchedulerStoppedError",
    "Transition",
    "TransitionCallback",
]
