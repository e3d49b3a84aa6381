"""`mainspring job watch`: one job's life as it happens, or all jobs in a live table."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.events import event_line, event_record, record_style
from mainspring.cli.job_ids import whole_id
from mainspring.cli.log_source import live_log
from mainspring.cli.options import Duration, duration_option
from mainspring.cli.output import Output, OutputOption, print_line, stdout

if TYPE_CHECKING:
    from mainspring.settings import Settings

ENDS = frozenset({"JobCompleted", "JobFailed", "JobTimedOut", "JobCancelled"})
# A job that was submitted a moment ago may not be decided yet.
_FIRST_EVENT_S = 5.0
# Of commands and reports: they tell of an id that no job may have.
_REFUSALS = frozenset({"CommandRejected", "ReportRefused"})
_WAITING = {
    "JobSubmitted": "waits to be started",
    "JobStarted": "is running",
    "JobRetryScheduled": "waits to be tried again",
    "JobRescheduled": "waits for its new time",
    "JobCancelRequested": "was asked to stop",
}


def watch(
    ctx: typer.Context,
    job_id: Annotated[
        str | None, typer.Argument(help="Id of the job; without one, all jobs.", metavar="[JOB_ID]", show_default=False)
    ] = None,
    *,
    timeout: Annotated[Duration, duration_option("--timeout", "Stop watching after this time.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Follow one job until it has ended, an event a line; or all jobs, in a live table on a terminal.

    Exit codes: 0 when it completed, 1 when it ended otherwise, 3 when there is none, 5 when --timeout ends first.
    """
    settings = settings_of(ctx)
    timeout_s = None if timeout is None else timeout.total_seconds()
    if job_id is not None:
        _watch_one(settings, whole_id(settings, job_id), timeout_s, output)
    elif output is Output.TABLE and sys.stdout.isatty():
        from mainspring.cli.job_board import show_board

        show_board(settings, timeout_s)
    else:
        _print_all(settings, timeout_s, output)


class _Seen(NamedTuple):
    event: Any
    partition: int
    offset: int


def _watch_one(settings: "Settings", job_id: str, timeout_s: float | None, output: Output) -> None:
    kinds: set[str] = set()
    with _spinner(output) as say:
        for seen in _events(settings, job_id, timeout_s):
            kind = type(seen.event).__name__
            kinds.add(kind)
            if output is Output.JSON:
                print_line(event_record(*seen))
            else:
                stdout().print(event_line(*seen), soft_wrap=True)
            say(kind)
    if not kinds - _REFUSALS:
        raise CliError(
            f"The log tells of no job {job_id!r}.",
            hint="Check the id and topics.prefix; a command that no scheduler has read yet is not decided.",
            code=ExitCode.NOT_FOUND,
        )
    if not kinds & ENDS:
        raise CliError(f"Job {job_id!r} has not ended yet.", hint="It goes on; watch it again.", code=ExitCode.TIMEOUT)
    if "JobCompleted" not in kinds:
        raise typer.Exit(ExitCode.FAILURE)


@contextmanager
def _spinner(output: Output) -> Iterator[Callable[[str], None]]:
    """Says below the lines what the job does now; only on a terminal."""
    if output is Output.JSON or not sys.stdout.isatty():
        yield lambda _kind: None
        return
    with stdout().status("looks for the job") as status:

        def say(kind: str) -> None:
            if kind in _WAITING:
                status.update(f"[{record_style(kind)}]{_WAITING[kind]}[/]")

        yield say


def _events(settings: "Settings", job_id: str, timeout_s: float | None) -> Iterator[_Seen]:
    """The events of the job so far, then those to come, until one ends it or the time is over."""
    from mainspring.topics import partition_for

    codec, key = settings.codec(), job_id.encode()
    started = time.monotonic()
    last, exists = -1, False
    with live_log(settings) as log:
        topic = log.topology.events
        partition = partition_for(key, topic.partitions)
        # The end is asked for before the history is read: what comes in between is read twice and shown once.
        end = log.spans([topic])[topic.name, partition].end
        with open_client(settings) as client:
            history = client.history(job_id)
        for entry in history:
            last = entry.offset
            exists = exists or type(entry.event).__name__ not in _REFUSALS
            yield _Seen(entry.event, entry.partition, entry.offset)
        # Refusals of later commands may stand behind the end.
        if any(type(entry.event).__name__ in ENDS for entry in history):
            return

        def is_over() -> bool:
            patience_s = _FIRST_EVENT_S if not exists and timeout_s is None else timeout_s
            return patience_s is not None and time.monotonic() - started > patience_s

        for _, _, raw in log.follow({(topic.name, partition): end}, is_over):
            if raw.key == key and raw.value is not None and raw.offset > last:
                last = raw.offset
                event = codec.decode(raw.value)
                exists = exists or type(event).__name__ not in _REFUSALS
                yield _Seen(event, partition, raw.offset)
                if type(event).__name__ in ENDS:
                    return


def _print_all(settings: "Settings", timeout_s: float | None, output: Output) -> None:
    started = time.monotonic()
    stopped = lambda: timeout_s is not None and time.monotonic() - started > timeout_s  # noqa: E731 - a line says it
    for event, partition, offset in follow_events(settings, stopped):
        if output is Output.JSON:
            print_line(event_record(event, partition, offset))
        else:
            stdout().print(event_line(event, partition, offset, with_job=True), soft_wrap=True)


def follow_events(
    settings: "Settings", stopped: Callable[[], bool], begun: Callable[[], object] = bool
) -> Iterator[tuple[Any, int, int]]:
    """Every event from now on, with its partition and offset, until `stopped` says so.

    `begun` is called once it is known from where on: what is written after that is not missed.
    """
    from mainspring.schemas import JOB_EVENT_TYPES, UnreadableRecordError

    codec = settings.codec()
    with live_log(settings) as log:
        starts = {at: span.end for at, span in log.spans([log.topology.events]).items()}
        begun()
        for _, partition, raw in log.follow(starts, stopped):
            try:
                event = codec.decode(raw.value or b"")
            except UnreadableRecordError:
                continue
            if type(event) in JOB_EVENT_TYPES:
                yield event, partition, raw.offset
