"""All jobs in a live table, for a terminal."""

import time
from typing import TYPE_CHECKING

from mainspring.cli.job_read import counts_text
from mainspring.cli.jobs_view import COLUMNS, summary_row
from mainspring.cli.output import stdout, table_of
from mainspring.cli.show import ago
from mainspring.cli.view_source import open_view

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mainspring.processors.projector.view import View
    from mainspring.settings import Settings

__all__ = ["show_board"]

_EVERY_S = 0.5
_FRAME_LINES = 6


def show_board(settings: "Settings", timeout_s: float | None) -> None:
    """Show the newest jobs and the counts of all states until Ctrl-C, or until the time is over."""
    from rich.live import Live

    until = None if timeout_s is None else time.monotonic() + timeout_s
    with open_view(settings) as view, Live(_board(view), console=stdout(), auto_refresh=False, screen=True) as live:
        while until is None or time.monotonic() < until:
            live.update(_board(view), refresh=True)
            time.sleep(_EVERY_S)


def _board(view: "View") -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    rows = max(1, stdout().height - _FRAME_LINES)
    now_ms = time.time_ns() // 1_000_000
    page = view.list(limit=min(rows, 500))
    newest = max((position.last_event_at_ms for position in view.position().values()), default=0)
    age = f"last event {ago(newest, now_ms)}" if newest else "no events yet"
    return Group(
        Text.from_markup(counts_text(view.counts()) or "No jobs yet."),
        Text(f"{time.strftime('%H:%M:%S %Z')}, {age}; Ctrl-C ends\n", style="dim"),
        table_of(COLUMNS, (summary_row(job, now_ms) for job in page.jobs)),
    )
