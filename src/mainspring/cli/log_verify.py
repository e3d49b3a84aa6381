"""`mainspring log verify|export`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.context import settings_of
from mainspring.cli.errors import ExitCode
from mainspring.cli.log_source import FileOption, TopicOption, log_of, topics_of
from mainspring.cli.options import Duration, FormatName, duration_option
from mainspring.cli.output import Output, OutputOption, escape, note, print_json, print_pairs, stderr, stdout, warn
from mainspring.cli.show import plural

if TYPE_CHECKING:
    from mainspring.log import VerifyReport
    from mainspring.processors.projector.view import View
    from mainspring.settings import Settings


def verify(
    ctx: typer.Context,
    *,
    view: Annotated[
        bool, typer.Option("--view/--no-view", help="Compare the view with the log, if there is one.")
    ] = True,
    tolerance: Annotated[Duration, duration_option("--tolerance", "How much before its time a start may be.")] = None,
    file: FileOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Audit the log: fold it all, and compare it with the scheduler's tables and the view.

    It checks that revisions are contiguous, every event has its cause, nothing was started twice or too early, and
    no transaction is torn. Exit code 1 when anything differs; the first fault of each kind is named.
    """
    from mainspring.log import verify as audit

    settings = settings_of(ctx)
    tolerance_ms = 0 if tolerance is None else round(tolerance.total_seconds() * 1000)
    with ExitStack() as stack:
        log = stack.enter_context(log_of(settings, file))
        compared = _view(settings, stack) if view and file is None else None
        with _progress("Auditing") as advance:
            report = audit(
                log,
                settings.codec(),
                view=compared,
                tolerance_ms=tolerance_ms,
                progress=lambda at: advance(at.records, at.offsets, f"{at.topic} {at.partition}"),
            )
    if output is Output.JSON:
        print_json(report.to_json())
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(ExitCode.FAILURE)


def export(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(help="The file to write; an existing one is replaced.", show_default=False)],
    *,
    form: Annotated[FormatName | None, typer.Option("--format", help="By default what the file's ending says.")] = None,
    topic: TopicOption = None,
    file: FileOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Write the log into a file: jsonl and avro can be audited with `verify --file`, csv is for spreadsheets."""
    from mainspring.log import ExportFormat
    from mainspring.log import export as write

    chosen = form.value if form is not None else path.suffix.lstrip(".").lower()
    if chosen not in {each.value for each in FormatName}:
        raise typer.BadParameter(
            f"{path.name} has none of the endings .jsonl, .avro, .csv: say which", param_hint="--format"
        )
    settings = settings_of(ctx)
    with log_of(settings, file) as log, _progress("Exporting") as advance:
        summary = write(
            log,
            settings.codec(),
            path,
            form=ExportFormat(chosen),
            topics=topics_of(log.topology, topic),
            progress=lambda records: advance(records, None, ""),
        )
    if output is Output.JSON:
        print_json({"path": str(summary.path), "records": summary.records, "bytes": summary.bytes})
    else:
        note(f"{plural(summary.records, 'record')}, {summary.bytes / 1e6:.1f} MB in {escape(summary.path)}")


def _view(settings: "Settings", stack: ExitStack) -> "View | None":
    from mainspring.processors.projector import ViewAbsentError
    from mainspring.processors.projector.view import View

    try:
        return stack.enter_context(View(settings.view.url.get_secret_value()))
    except ViewAbsentError:
        warn(f"There is no view at {settings.view.url}: only the log and the tables are compared.")
        return None


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int | None, str], None]]:
    """A bar on stderr while the body runs; nothing where no one sits at a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield lambda _records, _total, _where: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[where]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None, where="")
        yield lambda records, total, where: progress.update(task, completed=records, total=total, where=where)


def _print(report: "VerifyReport") -> None:
    from rich.text import Text

    statuses = ", ".join(f"{number} {status}" for status, number in sorted(report.jobs_by_status.items()))
    pairs: dict[str, Any] = {
        "records": f"{report.records_total} in {report.seconds:.1f} s",
        "events": str(sum(report.events.values())),
        "transactions": str(report.transactions),
        "jobs": f"{report.jobs} ({statuses})" if statuses else str(report.jobs),
        "table": plural(report.table_rows, "row")
        + (f", {report.table_rows_evicted} forgotten" if report.table_rows_evicted else ""),
        "schedules": str(report.schedules) if report.schedules else None,
        "view": "not compared"
        if report.view_rows is None
        else plural(report.view_rows, "row")
        + (f", {plural(report.view_schedules, 'schedule')}" if report.view_schedules else ""),
        "pending": f"{plural(report.commands_pending, 'command')} not read yet" if report.commands_pending else None,
        "rejected": ", ".join(f"{number} {code}" for code, number in sorted(report.rejections_by_code.items())),
        "dead letters": str(report.dead_letter_count) if report.dead_letter_count else None,
        "not checkable": ", ".join(f"{number} {why}" for why, number in sorted(report.unverifiable.items())),
    }
    print_pairs({name: value for name, value in pairs.items() if value})
    for text in report.notes:
        note(f"[dim]{escape(text)}[/]")
    if report.ok:
        stdout().print(
            Text(
                "\nThe log, the tables and the view agree."
                if report.view_rows is not None
                else "\nThe log and the tables agree.",
                style="bold green",
            )
        )
        return
    stdout().print(f"\n[bold red]{len(report.findings)} kinds of faults[/]")
    for finding in report.findings:
        stdout().print(
            Text.assemble((finding.check.value, "bold red"), str(finding).removeprefix(finding.check.value)),
            soft_wrap=True,
        )
