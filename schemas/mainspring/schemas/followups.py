"""What one partition tells another, on the `followups` topic."""

from dataclasses import dataclass

__all__ = [
    "ForwardedCommand",
    "InstanceFinished",
    "InstanceReplaced",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedCommand:
    """A command that arrived on the wrong partition, sent on unchanged."""

    key: str
    topic: str
    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFinished:
    """A job that a schedule fired has ended, or its submit was refused."""

    schedule_id: str
    job_id: str
    submit_command_id: str
    outcome: str
    detail: str
    finished_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceReplaced:
    """The next occurrence takes the place of this job, which ends now, whatever it is doing."""

    job_id: str
    schedule_id: str
    submit_command_id: str
    replaced_by: str
