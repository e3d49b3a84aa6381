"""Rows in memory: a partition that lives as long as its process."""

from mainspring.schemas.job import JobSpec
from mainspring.schemas.tables import JobState

__all__ = ["RowsInMemory"]


class RowsInMemory:
    """The tables of a partition as two dictionaries, without transactions. Implements `Rows`."""

    def __init__(self) -> None:
        self.states: dict[str, JobState] = {}
        self.specs: dict[str, JobSpec] = {}

    def state(self, job_id: str) -> JobState | None:
        return self.states.get(job_id)

    def spec(self, job_id: str) -> JobSpec | None:
        return self.specs.get(job_id)

    def put_state(self, job_id: str, state: JobState | None) -> None:
        if state is None:
            self.states.pop(job_id, None)
        else:
            self.states[job_id] = state

    def put_spec(self, job_id: str, spec: JobSpec | None) -> None:
        if spec is None:
            self.specs.pop(job_id, None)
        else:
            self.specs[job_id] = spec
