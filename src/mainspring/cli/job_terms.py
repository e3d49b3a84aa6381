"""The options that say under which terms a job runs, and what they make together."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.options import (
    Delay,
    Duration,
    Instant,
    PriorityName,
    RunAt,
    duration_option,
    instant_option,
    priority_option,
)

if TYPE_CHECKING:
    from mainspring.jobs import RetryPolicy

__all__ = ["JobTerms", "MaxLost", "Retries", "RetryDelay", "RetryMaxDelay", "Timeout", "retry_policy"]


Timeout = Annotated[Duration, duration_option("--timeout", "Longest run of one attempt.")]
Retries = Annotated[int | None, typer.Option("--retries", help="Retries after the first attempt.", min=0)]
RetryDelay = Annotated[
    Duration, duration_option("--retry-delay", "Longest delay of the first retry; it doubles with each.")
]
RetryMaxDelay = Annotated[Duration, duration_option("--retry-max-delay", "Longest delay of any retry.")]
MaxLost = Annotated[int | None, typer.Option("--max-lost", help="Attempts that may be lost with their worker.", min=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """The terms of one job as they were given; None: not given."""

    job_id: Annotated[str | None, typer.Option("--id", help="Id of the job; drawn if not given.", metavar="TEXT")] = (
        None
    )
    queue: Annotated[str | None, typer.Option("--queue", help="Queue; default if not given.", metavar="NAME")] = None
    priority: Annotated[
        PriorityName | None, priority_option("How urgent it is: LOW, MEDIUM (if not given), HIGH or CRITICAL.")
    ] = None
    tenant: Annotated[str | None, typer.Option("--tenant", help="Whose job it is.", metavar="NAME")] = None
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag to find it by; may be repeated.", metavar="TAG")
    ] = None
    delay: Delay = None
    run_at: RunAt = None
    spread: Annotated[
        Duration,
        duration_option(
            "--spread",
            "With --at or --delay: later by less than this, always by as much as the job's id says: 10m.",
        ),
    ] = None
    timeout: Timeout = None
    retries: Retries = None
    retry_delay: RetryDelay = None
    retry_max_delay: RetryMaxDelay = None
    deadline: Annotated[Instant, instant_option("--deadline", "When it should be done: the order of an edf queue.")] = (
        None
    )
    start_by: Annotated[Instant, instant_option("--start-by", "Cancel it if it has not started by then.")] = None
    max_lost: MaxLost = None

    def given(self) -> dict[str, Any]:
        """Those that were given, as the client takes them. Raises a usage error for those that do not go together."""
        from mainspring.schemas.common import Priority

        if self.delay is not None and self.run_at is not None:
            raise typer.BadParameter("give either --delay or --at: both say when the job is due", param_hint="--at")
        if self.spread is not None and self.delay is None and self.run_at is None:
            raise typer.BadParameter("needs --at or --delay, which it begins at", param_hint="--spread")
        terms: dict[str, Any] = {
            "job_id": self.job_id,
            "queue": self.queue,
            "priority": None if self.priority is None else Priority[self.priority.value],
            "tenant": self.tenant,
            "tags": tuple(self.tags) if self.tags else None,
            "delay": self.delay,
            "run_at": self.run_at,
            "spread": self.spread,
            "timeout": self.timeout,
            "retry": retry_policy(self.retries, self.retry_delay, self.retry_max_delay),
            "deadline": self.deadline,
            "start_deadline": self.start_by,
            "max_lost": self.max_lost,
        }
        return {term: value for term, value in terms.items() if value is not None}


def retry_policy(retries: int | None, delay: Duration, max_delay: Duration) -> "RetryPolicy | None":
    """The policy that the options of retries make; None where none was given."""
    from mainspring.jobs import RetryPolicy

    if retries is None:
        if delay is not None or max_delay is not None:
            raise typer.BadParameter("is needed with a delay of retries", param_hint="--retries")
        return None
    standard = RetryPolicy(max_retries=retries)
    return RetryPolicy(
        max_retries=retries,
        base_delay=standard.base_delay if delay is None else delay.total_seconds(),
        max_delay=standard.max_delay if max_delay is None else max_delay.total_seconds(),
    )
