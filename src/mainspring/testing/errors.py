"""What can go wrong with the kit itself, beside what the real client raises.

::

    MainspringError
    └── KitError
        ├── StandstillError     waited without a time-out for something that nothing will bring about
        ├── InsideJobError      a job asked the kit to move time, which is moving already
        └── WorkerGoneError     the worker was killed or has stopped
"""

from mainspring.schemas.errors import MainspringError

__all__ = ["InsideJobError", "KitError", "StandstillError", "WorkerGoneError"]


class KitError(MainspringError):
    """Base of what only the test kit raises."""


class StandstillError(KitError):
    """Nothing that is left to happen would end the wait."""

    def __init__(self, waited_for: str, story: str) -> None:
        super().__init__(
            f"waited for {waited_for}, and nothing that is left to happen brings it about. "
            f"Is a worker running that serves its queue? Give a timeout to wait only so long.\n{story}"
        )


class InsideJobError(KitError):
    """Time is moving already: a job that runs cannot move it."""

    def __init__(self) -> None:
        super().__init__(
            "a job that runs cannot move the time of its own test: submit and cancel from a job, and move time "
            "(advance, result, wait, join) from the test"
        )


class WorkerGoneError(KitError):
    """The worker has ended; start another with `start_worker()`."""

    def __init__(self, worker_id: str, state: str) -> None:
        super().__init__(f"worker {worker_id!r} is {state} and stays so; start another with start_worker()")
