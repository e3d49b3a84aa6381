"""What can go wrong with the facade.

::

    MainspringError
    └── FacadeError
        ├── NotStartedError            used before `start`                         (RuntimeError)
        ├── SchedulerStoppedError      used after `stop` began                     (RuntimeError)
        └── ProcessorDiedError         the embedded scheduler or worker ended on its own
"""

from mainspring.schemas.errors import MainspringError

__all__ = ["FacadeError", "NotStartedError", "ProcessorDiedError", "SchedulerStoppedError"]


class FacadeError(MainspringError):
    """Base of what the facade raises beyond the client's errors."""


class NotStartedError(FacadeError, RuntimeError):
    """The scheduler is not running yet."""

    def __init__(self) -> None:
        super().__init__("the scheduler is not started. Await start(), or use it as `async with JobScheduler(…)`")


class SchedulerStoppedError(FacadeError, RuntimeError):
    """The scheduler is stopping or has stopped. `left` is how many of its jobs are not terminal."""

    def __init__(self, left: int) -> None:
        self.left = left
        queued = f" {left} of its jobs are not terminal; they stay in the log for the next instance." if left else ""
        super().__init__(f"the scheduler was stopped and takes no more work.{queued} Start a new instance")


class ProcessorDiedError(FacadeError):
    """A thread of the embedded scheduler ended on its own. `part` says which, `__cause__` why."""

    def __init__(self, part: str) -> None:
        self.part = part
        super().__init__(f"the embedded {part} ended on its own. Stop this scheduler; jobs are safe in the log")
