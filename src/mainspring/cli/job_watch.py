"""`mainspring job watch`: one job's life as it happens."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.events import event_line, event_record
from mainspring.cli.log_source import live_log
from mainspring.cli.options import Duration, JobId, duration
from mainspring.cli.output import Output, OutputOption, print_line, stdout

if TYPE_CHECKING:
    from mainspring.settings import Settings

_ENDS = frozenset({"JobCompleted", "JobFailed", "JobTimedOut", "JobCancelled"})
# A job that was submitted a moment ago may not be decided yet.
_FIRST_EVENT_S = 5.0


def watch(
    ctx: typer.Context,
    job_id: JobId,
    *,
    timeout: Annotated[
        Duration, typer.Option(parser=duration, help="Give up watching after this time.", metavar="DURATION")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Follow one job until it has ended: an event a line, out of the log itself.

    Exit codes: 0 when it completed, 1 when it ended otherwise, 3 when there is none, 5 when --timeout ends first.
    """
    kinds = set()
    for seen in _events(settings_of(ctx), job_id, None if timeout is None else timeout.total_seconds()):
        kinds.add(type(seen.event).__name__)
        if output is Output.JSON:
            print_line(event_record(*seen))
        else:
            stdout().print(event_line(*seen), soft_wrap=True)
    if not kinds:
        raise CliError(
            f"The log tells of no job {job_id!r}.",
            hint="Check the id and topics.prefix; a command that no scheduler has read yet is not decided.",
            code=ExitCode.NOT_FOUND,
        )
    if not kinds & _ENDS:
        raise CliError(f"Job {job_id!r} has not ended yet.", hint="It goes on; watch it again.", code=ExitCode.TIMEOUT)
    if "JobCompleted" not in kinds:
        raise typer.Exit(ExitCode.FAILURE)


class _Seen(NamedTuple):
    event: Any
    partition: int
    offset: int


def _events(settings: "Settings", job_id: str, timeout_s: float | None) -> Iterator[_Seen]:
    """The events of the job so far, then those to come, until one ends it or the time is over."""
    from mainspring.topics import partition_for

    codec, key = settings.codec(), job_id.encode()
    started = time.monotonic()
    last = -1
    with live_log(settings) as log:
        topic = log.topology.events
        partition = partition_for(key, topic.partitions)
        # The end is asked for before the history is read: what comes in between is read twice and shown once.
        end = log.spans([topic])[topic.name, partition].end
        with open_client(settings) as client:
            history = client.history(job_id)
        for entry in history:
            last = entry.offset
            yield _Seen(entry.event, entry.partition, entry.offset)
        # Refusals of later commands may stand behind the end.
        if any(type(entry.event).__name__ in _ENDS for entry in history):
            return

        def is_over() -> bool:
            patience_s = _FIRST_EVENT_S if last < 0 and timeout_s is None else timeout_s
            return patience_s is not None and time.monotonic() - started > patience_s

        for _, _, raw in log.follow({(topic.name, partition): end}, is_over):
            if raw.key == key and raw.value is not None and raw.offset > last:
                last = raw.offset
                event = codec.decode(raw.value)
                yield _Seen(event, partition, raw.offset)
                if type(event).__name__ in _ENDS:
                    return
