"""The scheduler: the core, bound to the engine."""

from mainspring.processors.scheduler.config import SchedulerConfig
from mainspring.processors.scheduler.processes import supervise_schedulers
from mainspring.processors.scheduler.service import Scheduler, SchedulerStatus, run_scheduler

__all__ = ["Scheduler", "SchedulerConfig", "SchedulerStatus", "run_scheduler", "supervise_schedulers"]
