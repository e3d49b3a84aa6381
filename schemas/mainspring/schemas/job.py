"""The specification of a job."""

from dataclasses import dataclass

from mainspring.schemas.common import Priority

__all__ = [
    "JobSpec",
]


class RemembersBytes:
    """Holds the Avro bytes that a record was decoded from or encoded to, so that no codec makes them twice.

    A base class, because a slot of the dataclass itself would be a field: the bytes take no part in equality, hash,
    repr, `replace` or pickling. The slot is empty until a codec fills it.
    """

    __slots__ = ("_encoded",)

    _encoded: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(RemembersBytes):
    """What to run and under which terms, as it was submitted. Written once, never changed."""

    job_id: str
    name: str
    queue: str = "default"
    priority: Priority = Priority.MEDIUM
    tenant: str = ""
    payload: bytes = b""
    content_type: str = "application/json"
    run_at_ms: int | None = None
    delay_ms: int | None = None
    timeout_ms: int | None = None
    max_retries: int = 0
    retry_base_delay_ms: int = 1000
    retry_max_delay_ms: int = 60000
    retry_jitter: bool = True
    max_lost: int = 3
    deadline_ms: int | None = None
    start_deadline_ms: int | None = None
    tags: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    schedule_id: str | None = None
    retry_of: str | None = None
