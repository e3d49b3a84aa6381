"""The options that say what a schedule fires and under which policies, and what they make together."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.job_terms import MaxLost, Retries, RetryDelay, RetryMaxDelay, Timeout, retry_policy
from mainspring.cli.options import Duration, PriorityName, duration_option, priority_option

if TYPE_CHECKING:
    from mainspring.jobs.options import JobOptions

__all__ = ["InstanceTerms", "Payload", "Policies", "ScheduleId"]


class OverlapName(StrEnum):
    """What becomes of an occurrence while an instance runs, by name."""

    SKIP = "skip"
    BUFFER_ONE = "buffer-one"
    BUFFER_ALL = "buffer-all"
    CANCEL_OTHER = "cancel-other"
    REPLACE_OTHER = "replace-other"
    ALLOW_ALL = "allow-all"


class CatchUpName(StrEnum):
    """Which missed occurrences are fired, by name."""

    LATEST = "latest"
    ALL = "all"
    NONE = "none"


ScheduleId = Annotated[str, typer.Argument(help="Id of the schedule.", metavar="SCHEDULE_ID", show_default=False)]
Payload = Annotated[
    str | None,
    typer.Option(
        "--payload", help="Arguments of each instance as a JSON object; @FILE or - for stdin.", metavar="JSON"
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceTerms:
    """The terms of the instances as they were given; None: not given."""

    queue: Annotated[str | None, typer.Option("--queue", help="Queue of the instances.", metavar="NAME")] = None
    priority: Annotated[PriorityName | None, priority_option("How urgent each is: LOW, MEDIUM, HIGH or CRITICAL.")] = (
        None
    )
    tenant: Annotated[str | None, typer.Option("--tenant", help="Whose jobs they are.", metavar="NAME")] = None
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag to find them by; may be repeated.", metavar="TAG")
    ] = None
    timeout: Timeout = None
    retries: Retries = None
    retry_delay: RetryDelay = None
    retry_max_delay: RetryMaxDelay = None
    max_lost: MaxLost = None

    def options(self) -> "JobOptions | None":
        """The options of the job that they make; None where none was given."""
        from mainspring.jobs.options import NO_OPTIONS, JobOptions
        from mainspring.schemas.common import Priority

        options = JobOptions(
            queue=self.queue,
            priority=None if self.priority is None else Priority[self.priority.value],
            tenant=self.tenant,
            tags=tuple(self.tags) if self.tags else None,
            timeout=self.timeout,
            retry=retry_policy(self.retries, self.retry_delay, self.retry_max_delay),
            max_lost=self.max_lost,
        )
        return None if options == NO_OPTIONS else options


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies as they were given; None: not given."""

    overlap: Annotated[
        OverlapName | None,
        typer.Option("--overlap", help="What becomes of an occurrence while an instance runs; skip if not given."),
    ] = None
    buffer_max: Annotated[
        int | None, typer.Option("--buffer-max", help="How many may wait with buffer-all; 1000 if not given.", min=1)
    ] = None
    catch_up: Annotated[
        CatchUpName | None, typer.Option("--catch-up", help="Which missed ones are fired; latest if not given.")
    ] = None
    catch_up_window: Annotated[
        Duration,
        duration_option("--catch-up-window", "None that were missed longer ago than this; 1h if not given."),
    ] = None
    max_runs: Annotated[int | None, typer.Option("--max-runs", help="End after so many were fired.", min=1)] = None
    pause_on_failure: Annotated[
        bool | None,
        typer.Option(
            "--pause-on-failure/--no-pause-on-failure", help="Pause when an instance has used up its retries."
        ),
    ] = None
    note: Annotated[str | None, typer.Option("--note", help="What it is for.", metavar="TEXT")] = None

    def given(self) -> dict[str, Any]:
        """Those that were given, as the client takes them."""
        policies: dict[str, Any] = {
            "overlap": None if self.overlap is None else self.overlap.value,
            "buffer_max": self.buffer_max,
            "catch_up": None if self.catch_up is None else self.catch_up.value,
            "catch_up_window": self.catch_up_window,
            "max_runs": self.max_runs,
            "pause_on_failure": self.pause_on_failure,
            "note": self.note,
        }
        return {name: value for name, value in policies.items() if value is not None}
