"""`mainspring job cancel|retry|reschedule`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.job_ids import whole_id
from mainspring.cli.job_submit import print_result, print_submitted
from mainspring.cli.options import Delay, JobId, Reason, RunAt, WaitTimeout
from mainspring.cli.output import Output, OutputOption, note, print_json
from mainspring.cli.show import ago, iso, local

if TYPE_CHECKING:
    from mainspring.client import CancelOutcome


def cancel(ctx: typer.Context, job_id: JobId, *, reason: Reason = "", output: OutputOption = Output.TABLE) -> None:
    """Cancel a job: at once while it waits; a running attempt is told to stop, and only its success can win.

    Exit code 4 when the job had ended already, 3 when there is none.
    """
    settings = settings_of(ctx)
    job_id = whole_id(settings, job_id)
    with open_client(settings) as client:
        outcome = client.cancel(job_id, reason)
    if outcome.code == "UNKNOWN_JOB":
        raise _unknown(job_id)
    if output is Output.JSON:
        print_json(_outcome(outcome))
    if not outcome.took_effect and not outcome.pending:
        status = outcome.status.name if outcome.status is not None else "not cancelled"
        raise CliError(
            f"The cancel changed nothing: job {job_id!r} is {status}.",
            why="What has ended stays as it ended.",
            code=ExitCode.REJECTED,
        )
    if output is not Output.JSON:
        note(
            "[green]cancelled[/]"
            if outcome.took_effect
            else "[yellow]cancelling[/]: the attempt was told to stop; the job ends CANCELLED unless it succeeds"
        )


def retry(
    ctx: typer.Context,
    job_id: JobId,
    *,
    new_id: Annotated[str | None, typer.Option(help="Id of the new job; drawn if not given.", metavar="TEXT")] = None,
    reason: Reason = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the new job has ended, and print its result.")
    ] = False,
    wait_timeout: WaitTimeout = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run a job that has ended once more, as a new job with the same terms. Exit code 3 when there is none."""
    settings = settings_of(ctx)
    job_id = whole_id(settings, job_id)
    with open_client(settings) as client:
        with _known(job_id):
            handle = client.retry(job_id, reason, new_job_id=new_id)
        if wait:
            print_result(handle, wait_timeout, output)
        else:
            print_submitted(handle.job_id, output)


def reschedule(
    ctx: typer.Context,
    job_id: JobId,
    *,
    delay: Delay = None,
    at: RunAt = None,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Give a waiting job another time. Exit code 4 when it waits no more, 3 when there is none."""
    if (delay is None) == (at is None):
        raise typer.BadParameter("give one of --delay and --at", param_hint="--at")
    settings = settings_of(ctx)
    job_id = whole_id(settings, job_id)
    with open_client(settings) as client, _known(job_id):
        due_at = client.reschedule(job_id, run_at=at, delay=delay, reason=reason)
    due_ms = round(due_at.timestamp() * 1000)
    if output is Output.JSON:
        print_json({"job_id": job_id, "due_at": iso(due_ms)})
    else:
        note(f"due {local(due_ms)} ({ago(due_ms)})")


@contextmanager
def _known(job_id: str) -> Iterator[None]:
    """Tells the refusal of an unknown id from all others."""
    from mainspring.client import CommandRejectedError

    try:
        yield
    except CommandRejectedError as error:
        if error.code == "UNKNOWN_JOB":
            raise _unknown(job_id) from error
        raise


def _unknown(job_id: str) -> CliError:
    return CliError(
        f"There is no job {job_id!r}.",
        why="The scheduler does not know this id; finished jobs are forgotten after history.max_age_s.",
        hint="`mainspring job list` shows what there is.",
        code=ExitCode.NOT_FOUND,
    )


def _outcome(outcome: "CancelOutcome") -> dict[str, Any]:
    return {
        "job_id": outcome.job_id,
        "took_effect": outcome.took_effect,
        "pending": outcome.pending,
        "status": outcome.status.name if outcome.status is not None else None,
        "code": outcome.code,
    }
