"""`mainspring schedule history`: what became of each planned time, and who changed what, out of the log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.options import Instant
from mainspring.cli.output import Column, Output, OutputOption, note, print_json, print_table
from mainspring.cli.schedule_options import ScheduleId
from mainspring.cli.schedule_page import definition_json
from mainspring.cli.schedule_timing import absolute
from mainspring.cli.show import STATUS_STYLES, iso, local

if TYPE_CHECKING:
    from mainspring.client.schedules import ScheduleEntry
    from mainspring.schemas.schedule_events import InstanceEnded, OccurrenceFired, OccurrencesSkipped

_COLUMNS = (
    Column(head="REV", right=True),
    Column(head="DECIDED", drop=2),
    Column(head="WHAT"),
    Column(head="PLANNED FOR"),
    Column(head="COUNT", right=True, drop=3),
    Column(head="VERSION", right=True, drop=4),
    Column(head="ENDED"),
    Column(head="WHY", least=20, drop=1),
)
_QUIET = frozenset({"schedule_id", "revision", "decided_at_ms", "cause", "txn"})
_SHOWN = 50


@dataclass(slots=True)
class _Row:
    """One event, and how the instance that it fired has ended."""

    entry: "ScheduleEntry"
    end: "InstanceEnded | None" = None


def history(
    ctx: typer.Context,
    schedule_id: ScheduleId,
    *,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="The latest so many.")] = _SHOWN,
    since: Annotated[
        Instant, typer.Option(parser=absolute, help="Only what was decided since then.", metavar="TIME")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what became of each planned time of a schedule, and how it was changed, from the log. Oldest first.

    What was deleted keeps its history. Exit code 3 when the log tells nothing of it.
    """
    with open_client(settings_of(ctx)) as client:
        entries = client.schedules.history(schedule_id, since=since, timeout=None)
    if not entries and since is None:
        raise CliError(
            f"The log tells nothing of a schedule {schedule_id!r}.",
            hint="`mainspring schedule list` shows what there is.",
            code=ExitCode.NOT_FOUND,
        )
    rows = _rows(entries)
    shown = rows[-limit:]
    if output is Output.JSON:
        print_json([_json(row) for row in shown])
        return
    print_table(_COLUMNS, map(_cells, shown), empty="Nothing since then.")
    if len(shown) < len(rows):
        note(f"[dim]{len(rows) - len(shown)} before these: -n {len(rows)} shows all[/]")


def _rows(entries: Iterable["ScheduleEntry"]) -> list[_Row]:
    """One row per event; the end of an instance goes to the event that fired it, if that is among them."""
    from mainspring.schemas.schedule_events import InstanceEnded, OccurrenceFired, ScheduleCreated

    rows: list[_Row] = []
    fired: dict[int, _Row] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, InstanceEnded) and event.fired_revision in fired:
            fired[event.fired_revision].end = event
            continue
        row = _Row(entry)
        rows.append(row)
        if isinstance(event, ScheduleCreated):
            fired.clear()  # revisions begin anew with a new schedule of the same id
        elif isinstance(event, OccurrenceFired):
            fired[event.revision] = row
    return rows


def _json(row: _Row) -> dict[str, Any]:
    from mainspring.schemas.schedule_events import OccurrenceFired

    event = row.entry.event
    told = {
        each.name.removesuffix("_ms"): _value(each.name, getattr(event, each.name))
        for each in fields(event)
        if each.name not in _QUIET
    }
    ended = None
    if row.end is not None:
        ended = {"outcome": row.end.outcome, "detail": row.end.detail, "finished_at": iso(row.end.finished_at_ms)}
    return {
        "type": type(event).__name__,
        "revision": event.revision,
        "decided_at": iso(event.decided_at_ms),
        "partition": row.entry.partition,
        "offset": row.entry.offset,
        **told,
        **({"ended": ended} if isinstance(event, OccurrenceFired) else {}),
    }


def _value(name: str, value: Any) -> Any:
    return iso(value) if name.endswith("_ms") else definition_json(value)


def _cells(row: _Row) -> Sequence[Any]:
    from mainspring.schemas.schedule_events import OccurrenceFired, OccurrencesSkipped

    event = row.entry.event
    head = [event.revision, local(event.decided_at_ms, ms=True)]
    if isinstance(event, OccurrenceFired):
        return [*head, *_fired(event, row.end)]
    if isinstance(event, OccurrencesSkipped):
        return [*head, *_skipped(event)]
    said = [
        f"{'by' if name == 'actor' else name.replace('_', ' ')} {value}"
        for name, value in _json(row).items()
        if name in {"actor", "reject_code", "message", "pause_code", "completion_code", "how", "outcome", "job_id"}
        and value
    ]
    words = [str(value) for name in ("note", "reason") if (value := getattr(event, name, ""))]
    version = getattr(event, "version", 1 if type(event).__name__ == "ScheduleCreated" else "")
    return [*head, type(event).__name__, "", getattr(event, "count", ""), version, "", "; ".join((*said, *words))]


def _fired(event: "OccurrenceFired", end: "InstanceEnded | None") -> list[Any]:
    from rich.text import Text

    outcome = "RUNNING" if end is None else end.outcome
    why = [event.reason, *(["" if event.actor is None else f"by {event.actor}"]), "" if end is None else end.detail]
    what = "fired" if event.origin == "PLANNED" else f"fired ({event.origin.lower()})"
    ended = Text(outcome, style=STATUS_STYLES.get(outcome, "bold red"))
    return [what, local(event.nominal_ms, ms=True), "", event.version, ended, "; ".join(filter(None, why))]


def _skipped(event: "OccurrencesSkipped") -> list[Any]:
    until = f" … {local(event.last_ms, ms=True)}" if event.count > 1 else ""
    planned = local(event.first_ms, ms=True) + until
    return [event.outcome.lower(), planned, event.count, event.version, "", event.reason]
