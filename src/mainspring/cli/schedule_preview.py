"""`mainspring schedule preview`: the next times of a definition, without a broker."""

import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli import schedule_timing as options
from mainspring.cli.options import Instant
from mainspring.cli.output import Column, Output, OutputOption, note, print_json, print_table, stdout

if TYPE_CHECKING:
    from mainspring.processors.core.timing import Preview

__all__ = ["preview"]

_COUNT_MAX = 10_000
_UTC, _LOCAL, _FIRED, _REMARKS = (
    Column(head="UTC"),
    Column(head="LOCAL TIME"),
    Column(head="FIRED AT (UTC)"),
    Column(head="", style="yellow", fold=True),
)
_MARKS = {"gap": "end of a gap: the clock jumped over its time", "fold": "this local time comes twice"}


def preview(
    *,
    cron: options.Crons = None,
    every: options.Everies = None,
    tz: options.TimeZone = "UTC",
    after: Annotated[
        Instant, typer.Option(parser=options.absolute, help="Times later than this; now.", metavar="TIME")
    ] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=_COUNT_MAX, help="How many.")] = 10,
    seconds: options.Seconds = False,
    exclude: options.Excludes = None,
    anchor: options.Anchor = None,
    start: options.Start = None,
    end: options.End = None,
    jitter: options.Jitter = None,
    gap: options.GapOption = options.GapName.END_OF_GAP,
    fold: options.FoldOption = options.FoldName.FIRST,
    schedule_id: Annotated[
        str, typer.Option("--id", help="Id of the schedule, which its jitter follows from.", metavar="TEXT")
    ] = "preview",
    output: OutputOption = Output.TABLE,
) -> None:
    """Show when a schedule would fire next, in UTC and by the local clock, with what clock changes do to it.

    --cron, --every and --exclude may be repeated. Needs no broker.
    """
    from mainspring.processors.core.timing import Timing
    from mainspring.processors.core.timing import preview as next_times
    from mainspring.schemas.epoch import to_epoch_ms

    asked = options.TimingOptions(
        crons=cron,
        everies=every,
        excludes=exclude,
        zone=tz,
        seconds=seconds,
        anchor=anchor,
        start=start,
        end=end,
        jitter=jitter,
        gap=gap,
        fold=fold,
    )
    after_ms = time.time_ns() // 1_000_000 if after is None else to_epoch_ms(after)
    timing = asked.timing(None)
    rows = next_times(timing, schedule_id, after_ms, after_ms, count)
    if output is Output.JSON:
        print_json([_json(row) for row in rows])
        return
    stdout().print(Timing(timing, schedule_id, after_ms).describe() + "\n", markup=False)
    columns = (_UTC, _LOCAL, _REMARKS) if jitter is None else (_UTC, _LOCAL, _FIRED, _REMARKS)
    cells = ([_cells(row)[column.head] for column in columns] for row in rows)
    print_table(columns, cells, empty="It never fires again.")
    if rows and len(rows) < count:
        note("[dim]After that it never fires again.[/]")


def _json(row: "Preview") -> dict[str, Any]:
    from mainspring.schemas.epoch import instant_text

    return {
        "utc": row.utc,
        "local": row.local,
        "mark": str(row.mark) or None,
        "excluded": row.excluded,
        "fire_at": instant_text(row.fire_at_ms),
    }


def _cells(row: "Preview") -> dict[str, str]:
    """The cells of a row by the heads of their columns."""
    from mainspring.schemas.epoch import instant_text

    excluded = f"{row.excluded} excluded before" if row.excluded else ""
    remarks = "; ".join(remark for remark in (_MARKS.get(row.mark, ""), excluded) if remark)
    return {
        _UTC.head: row.utc,
        _LOCAL.head: f"{datetime.fromisoformat(row.local):%a} {row.local.replace('T', ' ')}",
        _FIRED.head: instant_text(row.fire_at_ms),
        _REMARKS.head: remarks,
    }
