"""The options that say what a schedule fires and under which policies, and what they make together."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.job_submit import retry_policy
from mainspring.cli.options import Duration, PriorityName, duration, priority_name, read_payload

if TYPE_CHECKING:
    from mainspring.jobs.options import JobOptions

__all__ = [
    "AppOption",
    "BufferMax",
    "CatchUpOption",
    "CatchUpWindow",
    "MaxLost",
    "MaxRuns",
    "Note",
    "OverlapOption",
    "PauseOnFailure",
    "Payload",
    "PriorityOption",
    "Queue",
    "Retries",
    "RetryDelay",
    "RetryMaxDelay",
    "ScheduleId",
    "Tags",
    "Tenant",
    "Timeout",
    "arguments_of",
    "policies_of",
    "terms_of",
]


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


def _duration(name: str, help_: str) -> Any:
    return typer.Option(name, parser=duration, help=help_, metavar="DURATION")


ScheduleId = Annotated[str, typer.Argument(help="Id of the schedule.", metavar="SCHEDULE_ID", show_default=False)]

AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        help="Where the job is registered: the options that it declares hold, and its payload is checked first. "
        "By default worker.app.",
        metavar="MODULE:APP",
    ),
]
Payload = Annotated[
    str | None,
    typer.Option(
        "--payload", help="Arguments of each instance as a JSON object; @FILE or - for stdin.", metavar="JSON"
    ),
]
Queue = Annotated[str | None, typer.Option("--queue", help="Queue of the instances.", metavar="NAME")]
PriorityOption = Annotated[
    PriorityName | None,
    typer.Option(
        "--priority",
        parser=priority_name,
        help="How urgent each is: LOW, MEDIUM, HIGH or CRITICAL.",
        metavar="PRIORITY",
    ),
]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Whose jobs they are.", metavar="NAME")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag to find them by; may be repeated.", metavar="TAG")]
Timeout = Annotated[Duration, _duration("--timeout", "Longest run of one attempt.")]
Retries = Annotated[int | None, typer.Option("--retries", help="Retries after the first attempt.", min=0)]
RetryDelay = Annotated[Duration, _duration("--retry-delay", "Longest delay of the first retry; it doubles with each.")]
RetryMaxDelay = Annotated[Duration, _duration("--retry-max-delay", "Longest delay of any retry.")]
MaxLost = Annotated[int | None, typer.Option("--max-lost", help="Attempts that may be lost with their worker.", min=0)]

OverlapOption = Annotated[
    OverlapName | None,
    typer.Option("--overlap", help="What becomes of an occurrence while an instance runs; skip if not given."),
]
BufferMax = Annotated[
    int | None, typer.Option("--buffer-max", help="How many may wait with buffer-all; 1000 if not given.", min=1)
]
CatchUpOption = Annotated[
    CatchUpName | None, typer.Option("--catch-up", help="Which missed ones are fired; latest if not given.")
]
CatchUpWindow = Annotated[
    Duration, _duration("--catch-up-window", "None that were missed longer ago than this; 1h if not given.")
]
MaxRuns = Annotated[int | None, typer.Option("--max-runs", help="End after so many were fired.", min=1)]
PauseOnFailure = Annotated[
    bool | None,
    typer.Option("--pause-on-failure/--no-pause-on-failure", help="Pause when an instance has used up its retries."),
]
Note = Annotated[str | None, typer.Option("--note", help="What it is for.", metavar="TEXT")]


def arguments_of(payload: str | None) -> dict[str, Any] | None:
    """The arguments of `--payload`; None where there are none. Raises a usage error."""
    arguments = read_payload(payload)
    if arguments is None or isinstance(arguments, dict):
        return arguments
    raise typer.BadParameter('must be a JSON object of arguments by name, like {"x": 1}', param_hint="--payload")


def terms_of(
    queue: str | None,
    priority: PriorityName | None,
    tenant: str | None,
    tags: list[str] | None,
    timeout: Duration,
    retries: int | None,
    retry_delay: Duration,
    retry_max_delay: Duration,
    max_lost: int | None,
) -> "JobOptions | None":
    """The terms of the instances; None where none was given."""
    from mainspring.jobs.options import NO_OPTIONS, JobOptions
    from mainspring.schemas.common import Priority

    options = JobOptions(
        queue=queue,
        priority=None if priority is None else Priority[priority.value],
        tenant=tenant,
        tags=tuple(tags) if tags else None,
        timeout=timeout,
        retry=retry_policy(retries, retry_delay, retry_max_delay),
        max_lost=max_lost,
    )
    return None if options == NO_OPTIONS else options


def policies_of(
    overlap: OverlapName | None,
    buffer_max: int | None,
    catch_up: CatchUpName | None,
    catch_up_window: Duration,
    max_runs: int | None,
    pause_on_failure: bool | None,  # noqa: FBT001 - the value of an option, handed on
    note: str | None,
) -> dict[str, Any]:
    """The policies that were given, as the client takes them."""
    policies: dict[str, Any] = {
        "overlap": None if overlap is None else overlap.value,
        "buffer_max": buffer_max,
        "catch_up": None if catch_up is None else catch_up.value,
        "catch_up_window": catch_up_window,
        "max_runs": max_runs,
        "pause_on_failure": pause_on_failure,
        "note": note,
    }
    return {name: value for name, value in policies.items() if value is not None}
