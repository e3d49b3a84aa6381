"""Invitations to workers, on the `work.<queue>.<priority>` topics."""

from dataclasses import dataclass

from mainspring.schemas.job import JobSpec

__all__ = [
    "WorkOffered",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOffered:
    """An invitation to claim one attempt of a job."""

    job_id: str
    attempt: int
    offer: int
    offered_at_ms: int
    due_at_ms: int
    spec: JobSpec
