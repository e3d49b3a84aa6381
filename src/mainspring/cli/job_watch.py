"""`mainspring job watch`: one job's life as it happens, or all jobs in a live table."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.events import event_line, event_record
from mainspring.cli.job_read import not_found
from mainspring.cli.options import Duration, JobId, duration
from mainspring.cli.output import Output, OutputOption, print_line, stdout
from mainspring.cli.tail import follow, tail_consumer

if TYPE_CHECKING:
    from mainspring.client import HistoryEntry
    from mainspring.settings import Settings

_ENDS = {"JobCompleted", "JobFailed", "JobTimedOut", "JobCancelled"}


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
    deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
    end = None
    for entry in _entries(settings_of(ctx), job_id, deadline):
        if output is Output.JSON:
            print_line(event_record(entry.event, entry.partition, entry.offset))
        else:
            stdout().print(event_line(entry.event, entry.partition, entry.offset), soft_wrap=True)
        kind = type(entry.event).__name__
        end = kind if kind in _ENDS else end
    if end != "JobCompleted":
        raise typer.Exit(ExitCode.FAILURE)


def _entries(settings: "Settings", job_id: str, deadline: float | None) -> Iterator["HistoryEntry"]:
    """The events of the job so far, then those to come, until one ends it."""
    from mainspring.client import HistoryEntry
    from mainspring.topics import partition_for

    topology, codec = settings.topology(), settings.codec()
    topic, key = topology.events.name, job_id.encode()
    partition = partition_for(key, topology.partitions)
    consumer = tail_consumer(settings)
    try:
        # The end is asked for before the history is read: what comes in between is seen twice and shown once.
        start = _end(consumer, topic, partition)
        with open_client(settings) as client:
            history = list(client.history(job_id))
        yield from history
        # Refusals of later commands may stand behind the end.
        if any(type(entry.event).__name__ in _ENDS for entry in history):
            return
        seen = history[-1].offset if history else -1
        for message in follow(consumer, {(topic, partition): start}):
            if deadline is not None and time.monotonic() > deadline:
                raise CliError(f"Job {job_id!r} has not ended yet.", hint="Watch it again.", code=ExitCode.TIMEOUT)
            if message is None:
                if not history:
                    raise not_found(job_id)
                continue
            offset: Any = message.offset()
            value = message.value()
            if message.key() != key or value is None or offset <= seen:
                continue
            entry: Any = HistoryEntry(partition, offset, codec.decode(value))  # type: ignore[arg-type]  # events hold events only
            yield entry
            if type(entry.event).__name__ in _ENDS:
                return
    finally:
        consumer.close()


def _end(consumer: Any, topic: str, partition: int) -> int:
    from confluent_kafka import TopicPartition

    _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
    return int(high)
