"""`mainspring job submit`."""

import json
import sys
from base64 import b64encode
from typing import TYPE_CHECKING, Annotated

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.job_app import job_of
from mainspring.cli.job_terms import JobTerms
from mainspring.cli.option_groups import grouped
from mainspring.cli.options import AppOption, Duration, Reason, WaitTimeout, arguments_of
from mainspring.cli.output import Output, OutputOption, escape, note, print_json, progress, stdout
from mainspring.cli.show import ago, iso, local

if TYPE_CHECKING:
    from mainspring.client import JobHandle


@grouped
def submit(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(help="Name that the job's handler is registered under.", metavar="NAME", show_default=False)
    ],
    *,
    app: AppOption = None,
    payload: Annotated[
        str | None, typer.Option(help="Arguments as a JSON object; @FILE or - for stdin.", metavar="JSON")
    ] = None,
    terms: JobTerms,
    reason: Reason = "",
    verdict: Annotated[
        bool,
        typer.Option("--verdict/--no-verdict", help="Wait for the scheduler's answer, or only until it is in the log."),
    ] = True,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended, and print its result.")] = False,
    wait_timeout: WaitTimeout = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Submit a job. Exit codes: 4 when it is rejected, 1 when --wait sees it fail, 5 when --wait-timeout ends first."""
    given = terms.given()
    arguments = arguments_of(payload)
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
