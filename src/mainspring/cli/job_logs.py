"""`mainspring job logs`: what the attempts of a job wrote."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import reach
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.job_ids import whole_id
from mainspring.cli.options import JobId
from mainspring.cli.output import Output, OutputOption, note, print_json, printable, write
from mainspring.cli.show import iso, local

if TYPE_CHECKING:
    from mainspring.schemas import LogCaptured
    from mainspring.settings import Settings

_CLOCK_SLACK_MS = 600_000


def logs(
    ctx: typer.Context,
    job_id: JobId,
    *,
    attempt: Annotated[int | None, typer.Option(help="Only this attempt.", min=1)] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what a job's attempts wrote to stdout, stderr and logging; it is kept for a month."""
    settings = settings_of(ctx)
    job_id = whole_id(settings, job_id)
    found = [each for each in _captured(settings, job_id) if attempt in (None, each.attempt)]
    if not found:
        raise CliError(
            f"Nothing was captured of job {job_id!r}" + (f", attempt {attempt}." if attempt else "."),
            why="Output is written when an attempt ends; it has not ended, wrote nothing, or was lost with its worker.",
            hint=f"`mainspring job get {job_id}` shows its attempts.",
            code=ExitCode.NOT_FOUND,
        )
    if output is Output.JSON:
        print_json({"job_id": job_id, "attempts": [_record(each) for each in found]})
        return
    for each in found:
        cut = f", {each.dropped_bytes} bytes left out" if each.dropped_bytes else ""
        note(f"[dim]── attempt {each.attempt} on {each.worker_id}, {local(each.reported_at_ms)}{cut}[/]")
        write(printable(each.text if each.text.endswith("\n") else each.text + "\n"))


def _captured(settings: "Settings", job_id: str) -> list["LogCaptured"]:
    from mainspring.jobs.ids import time_of_id
    from mainspring.log.kafka import KafkaLog
    from mainspring.log.source import Span
    from mainspring.schemas import LogCaptured, UnreadableRecordError
    from mainspring.topics import partition_for

    topology, codec = settings.topology(), settings.codec()
    topic, key = topology.logs, job_id.encode()
    partition = partition_for(key, topic.partitions)
    with KafkaLog(reach(settings), topology) as log:
        span = log.spans([topic])[topic.name, partition]
        made_at_ms = time_of_id(job_id)
        if made_at_ms is not None:
            first = log.at_time(topic, max(0, made_at_ms - _CLOCK_SLACK_MS))[partition]
            span = Span(start=span.end if first is None else max(span.start, first), end=span.end)
        found: dict[tuple[int, str], Any] = {}
        for batch in log.read(topic, partition, span):
            for raw in batch:
                if raw.key != key or raw.value is None:
                    continue
                try:
                    record = codec.decode(raw.value)
                except UnreadableRecordError:
                    continue
                if isinstance(record, LogCaptured):
                    # A report that was sent twice is shown once.
                    found[record.attempt, record.incarnation] = record
    return sorted(found.values(), key=lambda record: (record.attempt, record.reported_at_ms))


def _record(captured: "LogCaptured") -> dict[str, Any]:
    return {
        "attempt": captured.attempt,
        "worker_id": captured.worker_id,
        "reported_at": iso(captured.reported_at_ms),
        "text": captured.text,
        "dropped_bytes": captured.dropped_bytes,
    }
