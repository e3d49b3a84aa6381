"""`mainspring job submit`."""

import json
import sys
from base64 import b64encode
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.job_app import job_of
from mainspring.cli.options import (
    Duration,
    Instant,
    PriorityName,
    Reason,
    duration,
    instant,
    priority_name,
    read_payload,
)
from mainspring.cli.output import Output, OutputOption, escape, note, print_json, progress, stdout
from mainspring.cli.show import ago, iso, local

if TYPE_CHECKING:
    from mainspring.client import JobHandle
    from mainspring.jobs import RetryPolicy


def _duration(help_: str) -> Any:
    return typer.Option(parser=duration, help=help_, metavar="DURATION")


def _instant(help_: str) -> Any:
    return typer.Option(parser=instant, help=help_, metavar="TIME")


def submit(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(help="Name that the job's handler is registered under.", metavar="NAME", show_default=False)
    ],
    *,
    app: Annotated[
        str | None,
        typer.Option(
            help="Where the job is registered: the options that it declares hold, and its payload is checked first. "
            "By default worker.app.",
            metavar="MODULE:APP",
        ),
    ] = None,
    payload: Annotated[
        str | None, typer.Option(help="Arguments as a JSON object; @FILE or - for stdin.", metavar="JSON")
    ] = None,
    job_id: Annotated[
        str | None, typer.Option("--id", help="Id of the job; drawn if not given.", metavar="TEXT")
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Queue; default if not given.", metavar="NAME")] = None,
    priority: Annotated[
        PriorityName | None,
        typer.Option(
            parser=priority_name,
            help="How urgent it is: LOW, MEDIUM (if not given), HIGH or CRITICAL.",
            metavar="PRIORITY",
        ),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Whose job it is.", metavar="NAME")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag to find it by; may be repeated.", metavar="TAG")] = None,
    delay: Annotated[Duration, _duration("Run it after this time: 10s, 5m, 2h.")] = None,
    at: Annotated[Instant, _instant("Run it at this time (ISO 8601; local without a zone).")] = None,
    spread: Annotated[
        Duration,
        _duration("With --at or --delay: later by less than this, always by as much as the job's id says: 10m."),
    ] = None,
    timeout: Annotated[Duration, _duration("Longest run of one attempt.")] = None,
    retries: Annotated[int | None, typer.Option(help="Retries after the first attempt.", min=0)] = None,
    retry_delay: Annotated[Duration, _duration("Longest delay of the first retry; it doubles with each.")] = None,
    retry_max_delay: Annotated[Duration, _duration("Longest delay of any retry.")] = None,
    deadline: Annotated[Instant, _instant("When it should be done: the order of an edf queue.")] = None,
    start_by: Annotated[Instant, _instant("Cancel it if it has not started by then.")] = None,
    max_lost: Annotated[int | None, typer.Option(help="Attempts that may be lost with their worker.", min=0)] = None,
    reason: Reason = "",
    verdict: Annotated[
        bool,
        typer.Option("--verdict/--no-verdict", help="Wait for the scheduler's answer, or only until it is in the log."),
    ] = True,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended, and print its result.")] = False,
    wait_timeout: Annotated[Duration, _duration("Give up waiting after this time.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Submit a job. Exit codes: 4 when it is rejected, 1 when --wait sees it fail, 5 when --wait-timeout ends first."""
    from mainspring.schemas.common import Priority

    if delay is not None and at is not None:
        raise typer.BadParameter("give either --delay or --at: both say when the job is due", param_hint="--at")
    if spread is not None and delay is None and at is None:
        raise typer.BadParameter("needs --at or --delay, which it begins at", param_hint="--spread")
    arguments = read_payload(payload)
    if arguments is not None and not isinstance(arguments, dict):
        raise typer.BadParameter('must be a JSON object of arguments by name, like {"x": 1}', param_hint="--payload")
    terms: dict[str, Any] = {
        "job_id": job_id,
        "queue": queue,
        "priority": None if priority is None else Priority[priority.value],
        "tenant": tenant,
        "tags": tuple(tag) if tag else None,
        "delay": delay,
        "run_at": at,
        "spread": spread,
        "timeout": timeout,
        "retry": retry_policy(retries, retry_delay, retry_max_delay),
        "deadline": deadline,
        "start_deadline": start_by,
        "max_lost": max_lost,
    }
    given = {term: value for term, value in terms.items() if value is not None}
    settings = settings_of(ctx)
    job = job_of(name, arguments, (app,) if app else (), settings.worker.app)
    with open_client(settings) as client:
        handle = client.submit(job, arguments, reason=reason, **given)
        if wait:
            print_result(handle, wait_timeout, output)
        elif verdict:
            _print_accepted(handle, output)
        else:
            print_submitted(handle.job_id, output)


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


def print_submitted(job_id: str, output: Output) -> None:
    """The id of a job whose command is in the log."""
    if output is Output.JSON:
        print_json({"job_id": job_id})
    else:
        stdout().print(escape(job_id))


def _print_accepted(handle: "JobHandle", output: Output) -> None:
    accepted = handle.accepted()
    due_ms = None if accepted.due_at is None else round(accepted.due_at.timestamp() * 1000)
    if output is Output.JSON:
        print_json({"job_id": handle.job_id, "due_at": iso(due_ms), "seq": accepted.seq})
        return
    stdout().print(escape(handle.job_id))
    note(f"[green]accepted[/], due {local(due_ms)} ({ago(due_ms)})")


def print_result(handle: "JobHandle", timeout: Duration, output: Output) -> None:
    """Wait for the end of the job and print its result; other ends than COMPLETED are raised as the client's errors.

    The id comes first, on stderr: whoever does not wait to the end can go on with it.
    """
    note(f"[dim]submitted[/] {escape(handle.job_id)}")
    try:
        with progress("Waiting for its end…"):
            result = handle.result(None if timeout is None else timeout.total_seconds())
    except KeyboardInterrupt:
        raise CliError(
            f"Job {handle.job_id} goes on; only the waiting has ended.",
            hint=f"mainspring job watch {handle.job_id}",
            code=ExitCode.INTERRUPTED,
        ) from None
    if output is Output.JSON:
        shown = {"base64": b64encode(result).decode("ascii")} if isinstance(result, bytes) else result
        print_json({"job_id": handle.job_id, "status": "COMPLETED", "result": shown})
        return
    note("[green]COMPLETED[/]")
    if isinstance(result, bytes):
        sys.stdout.buffer.write(result)
    elif result is not None:
        stdout().print(escape(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)))
