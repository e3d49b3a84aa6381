"""`mainspring log tail|history|state|dead-letters`."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.events import plain, record_json, record_line
from mainspring.cli.log_source import FileOption, TopicOption, live_log, log_of, topics_of
from mainspring.cli.options import Instant, JobId, instant_option
from mainspring.cli.output import (
    Column,
    Output,
    OutputOption,
    note,
    print_json,
    print_line,
    print_pairs,
    print_table,
    stdout,
)
from mainspring.cli.show import STATUS_STYLES, iso, local, plural, status_text

if TYPE_CHECKING:
    from mainspring.log import LogRecord, StateAt
    from mainspring.schemas.tables import JobState


def tail(
    ctx: typer.Context,
    *,
    topic: TopicOption = None,
    job: Annotated[str | None, typer.Option(help="Only records with this key.", metavar="JOB_ID")] = None,
    last: Annotated[int, typer.Option("-n", "--last", help="Begin with so many of the newest.", min=0)] = 10,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with new records until Ctrl-C.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the newest records of `events` (or other topics), a line each."""
    from mainspring.log import tail as read_tail

    settings = settings_of(ctx)
    with live_log(settings) as log:
        chosen = topics_of(log.topology, topic)
        records = read_tail(log, settings.codec(), topics=chosen, last=last, job_id=job, follow=follow)
        for record in records:
            _print_record(record, output, prefix=settings.topics.prefix)


def history(
    ctx: typer.Context,
    job_id: JobId,
    *,
    heartbeats: Annotated[bool, typer.Option("--heartbeats", help="The heartbeats that name the job, too.")] = False,
    file: FileOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print everything that was asked, reported, decided and captured about a job, in order, from all topics."""
    from mainspring.log import history as read_history

    settings = settings_of(ctx)
    with log_of(settings, file) as log:
        records = read_history(log, settings.codec(), job_id, heartbeats=heartbeats)
        prefix = log.topology.prefix
    if not records:
        raise _unknown(job_id)
    if output is Output.JSON:
        print_json([record_json(record) for record in records])
        return
    for record in records:
        _print_record(record, output, prefix=prefix)


def state(
    ctx: typer.Context,
    *,
    at: Annotated[
        Instant,
        instant_option("--at", "The time (ISO 8601; local without a zone); now by default."),
    ] = None,
    job: Annotated[str | None, typer.Option(help="One job, with all its columns.", metavar="JOB_ID")] = None,
    jobs: Annotated[bool, typer.Option("--jobs", help="Every job, not their counts.")] = False,
    file: FileOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Fold the events up to a time: how many jobs there were in each state, one job, or all of them."""
    from mainspring.log import job_at, state_at, states_at

    settings = settings_of(ctx)
    at_ms = time.time_ns() // 1_000_000 if at is None else round(at.timestamp() * 1000)
    codec = settings.codec()
    with log_of(settings, file) as log:
        if job is not None:
            found = job_at(log, codec, job, at_ms)
            if found is None:
                raise _unknown(job, f" at {local(at_ms)}")
            _print_job(found, at_ms, output)
        elif jobs:
            for each in states_at(log, codec, at_ms):
                print_line(_state_json(each)) if output is Output.JSON else stdout().print(
                    _state_line(each), soft_wrap=True
                )
        else:
            _print_counts(state_at(log, codec, at_ms), output)


def dead_letters(ctx: typer.Context, *, file: FileOption = None, output: OutputOption = Output.TABLE) -> None:
    """List the records that were put aside because they could not be read or applied."""
    from mainspring.log import dead_letters as read_dead_letters

    settings = settings_of(ctx)
    with log_of(settings, file) as log:
        records = list(read_dead_letters(log, settings.codec()))
    if output is Output.JSON:
        print_json([record_json(record) for record in records])
        return
    columns = ("RECORDED", "REASON", "RECORD", "KEY", "BYTES", "DETAIL")
    rows = [_dead(record) for record in records]
    print_table(
        [Column(head=head, fold=head == "DETAIL", right=head == "BYTES") for head in columns], rows, empty="None."
    )


def _dead(record: "LogRecord") -> list[Any]:
    letter: Any = record.record
    key = "" if letter.key is None else letter.key.decode("utf-8", "backslashreplace")
    place = f"{letter.topic}[{letter.partition}]@{letter.offset}"
    return [local(letter.recorded_at_ms), letter.reason, place, key, str(letter.value_bytes), letter.detail]


def _print_record(record: "LogRecord", output: Output, *, prefix: str) -> None:
    if output is Output.JSON:
        print_line(record_json(record))
    else:
        stdout().print(record_line(record, prefix), soft_wrap=True)


def _print_counts(counted: "StateAt", output: Output) -> None:
    if output is Output.JSON:
        print_json(
            {
                "at": iso(counted.at_ms),
                "jobs": counted.jobs,
                "by_status": {status.name: number for status, number in counted.by_status.items()},
                "by_queue": {
                    queue: {status.name: number for status, number in statuses.items()}
                    for queue, statuses in counted.by_queue.items()
                },
            }
        )
        return
    note(f"[dim]{plural(counted.jobs, 'job')} at {local(counted.at_ms)}[/]")
    names = [name for name in STATUS_STYLES if any(status.name == name for status in counted.by_status)]
    columns = [Column(head="QUEUE"), *(Column(head=name, right=True, style=STATUS_STYLES[name]) for name in names)]
    rows = []
    for queue, statuses in sorted(counted.by_queue.items()):
        by_name = {status.name: number for status, number in statuses.items()}
        rows.append([queue, *(str(by_name.get(name, 0)) for name in names)])
    print_table(columns, rows)


def _print_job(found: "JobState", at_ms: int, output: Output) -> None:
    if output is Output.JSON:
        print_json({"at": iso(at_ms)} | _state_json(found))
        return
    pairs: dict[str, Any] = {"at": local(at_ms)}
    for name, value in plain(found).items():
        if name == "dispatch" or value is None:
            continue
        if name.endswith("_ms"):
            pairs[name.removesuffix("_ms")] = local(value, ms=True)
        else:
            pairs[name] = status_text(value) if name == "status" else value
    print_pairs(pairs)


def _state_json(state: "JobState") -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in plain(state).items():
        # The columns of offering belong to no event: the fold does not know them.
        if name == "dispatch":
            continue
        if name.endswith("_ms"):
            shown[name.removesuffix("_ms")] = iso(value)
        else:
            shown[name] = value
    return shown


def _state_line(state: "JobState") -> Any:
    from rich.text import Text

    line = Text(f"{state.job_id}  ")
    line.append(f"{state.status.name:<10}  ", style=STATUS_STYLES.get(state.status.name, ""))
    line.append(
        f"{state.queue}  {state.priority.name}  attempt {state.attempt}  due {local(state.due_at_ms)}", style="dim"
    )
    return line


def _unknown(job_id: str, when: str = "") -> CliError:
    return CliError(
        f"The log tells of no job {job_id!r}{when}.",
        hint="Check the id, topics.prefix and the time.",
        code=ExitCode.NOT_FOUND,
    )
