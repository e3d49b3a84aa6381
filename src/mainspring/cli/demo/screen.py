"""How the demo looks while it runs: a live table on a terminal, plain lines elsewhere."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mainspring.cli.demo.board import Board
from mainspring.cli.demo.fleet import Fleet, Member
from mainspring.cli.demo.owners import Owners
from mainspring.cli.demo.plan import Planned
from mainspring.cli.demo.story import Story
from mainspring.cli.durations import format_duration
from mainspring.cli.show import STATUS_STYLES
from mainspring.schemas.common import JobStatus
from mainspring.schemas.records import JobEvent

__all__ = ["Screen", "late_text"]

_FRAMES_PER_S = 6
_MARKS = {JobStatus.PENDING: "·", JobStatus.RUNNING: "▶", JobStatus.RETRY_WAIT: "↻"}
_ENDED = "■"
_LATE_MS, _VERY_LATE_MS = 2_000, 10_000
"""A kill costs up to a lease: what is coloured is later than a start on a healthy, busy machine."""


class Screen:
    """Shows the demo on a console. `say` may be called from any thread."""

    def __init__(self, console: Console, plan: tuple[Planned, ...]) -> None:
        self._console = console
        self._plan = plan
        self._started = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._started

    def say(self, text: str) -> None:
        """One line of rich markup, behind the time."""
        self._console.print(f"[dim]{self.elapsed_s:5.1f} s[/]  {text}", soft_wrap=not self._console.is_terminal)

    def on_event(self, story: Story, _event: JobEvent) -> None:
        """What the board tells of each event: a line for each end where there is no table to see it in."""
        if not self._console.is_terminal and story.is_ended:
            style = STATUS_STYLES[story.status.name]
            where = f" on {story.worker_id}" if story.worker_id else ""
            tries = f", {len(story.attempts)} attempts" if len(story.attempts) > 1 else ""
            late = f", {format_duration(story.worst_late_ms / 1000)} late" if story.worst_late_ms is not None else ""
            self.say(f"{story.job_id:<26} [{style}]{story.status.name}[/]{where}{tries}{late}")

    def expect(self, plan: tuple[Planned, ...]) -> None:
        """Show this plan from now on."""
        self._plan = plan

    @contextmanager
    def live(self, fleet: Fleet, board: Board, owners: Owners) -> Iterator[None]:
        """The table, for as long as the context lasts; it leaves only the lines that were said."""
        if not self._console.is_terminal:
            yield
            return
        with Live(
            console=self._console,
            get_renderable=lambda: self._frame(fleet, board, owners),
            refresh_per_second=_FRAMES_PER_S,
            transient=True,
        ):
            yield

    def _frame(self, fleet: Fleet, board: Board, owners: Owners) -> RenderableType:
        stories = dict(board.stories)
        return Group(Text(), _fleet_grid(fleet, stories.values(), owners), Text(), self._jobs(stories))

    def _jobs(self, stories: dict[str, Story]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold dim")
        table.add_column("JOBS", no_wrap=True, min_width=23)
        table.add_column("", no_wrap=True, min_width=20)
        for head in ("TRY", "WORKER", "LATE"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("ENDS AS", no_wrap=True, min_width=13)
        for row in dict.fromkeys(planned.kind.row for planned in self._plan):
            planned = [job for job in self._plan if job.kind.row == row]
            table.add_row(*_row(row, planned, [stories.get(job.job_id) for job in planned]))
        return table


def _row(name: str, planned: Sequence[Planned], stories: Sequence[Story | None]) -> tuple[RenderableType, ...]:
    known = [story for story in stories if story is not None]
    tries = max((len(story.attempts) for story in known), default=0)
    workers = {story.worker_id for story in known if story.worker_id}
    late_ms = max((late for story in known if (late := story.worst_late_ms) is not None), default=None)
    return (
        name,
        _squares(stories),
        str(tries or ""),
        "both" if len(workers) > 1 else "".join(workers),
        late_text(late_ms),
        _ends(planned, known),
    )


def _squares(stories: Sequence[Story | None]) -> Text:
    """A mark for each job, in the colour of its status."""
    text = Text()
    for story in stories:
        if story is None:
            text.append(" ")
            continue
        status = "CANCELLING" if story.cancelling and story.is_running else story.status.name
        text.append(_MARKS.get(story.status, _ENDED), style=STATUS_STYLES[status])
    return text


def _ends(planned: Sequence[Planned], known: Sequence[Story]) -> Text:
    """The end that all must come to, with how many have, or what came otherwise."""
    expected = planned[0].expected.status
    ended = Counter(story.status for story in known if story.is_ended)
    wrong = [status.name for status in ended if status is not expected]
    if wrong:
        return Text(f"✗ {' '.join(wrong)}", style="bold red")
    if ended[expected] == len(planned):
        return Text.assemble(("✓ ", "bold green"), (expected.name, STATUS_STYLES[expected.name]))
    return Text(f"{ended[expected]}/{len(planned)} {expected.name}", style="dim")


def late_text(late_ms: int | None) -> Text:
    """A lateness, the more striking the later."""
    if late_ms is None:
        return Text()
    style = "" if late_ms < _LATE_MS else "yellow" if late_ms < _VERY_LATE_MS else "bold yellow"
    return Text(format_duration(max(0, late_ms) / 1000), style=style)


def _fleet_grid(fleet: Fleet, stories: Iterable[Story], owners: Owners) -> Table:
    running = Counter(story.worker_id for story in stories if story.is_running)
    grid = Table.grid(padding=(0, 3, 0, 0))
    for _ in range(len({member.role for member in fleet})):
        grid.add_column(no_wrap=True)
    columns: dict[str, list[Text]] = {}
    for member in fleet:
        does = {"scheduler": _partitions(owners.of(member.name)), "worker": f"runs {running[member.name]}"}
        columns.setdefault(member.role, []).append(_member(member, does.get(member.role, "keeps the view")))
    for row in zip_longest(*columns.values(), fillvalue=Text()):
        grid.add_row(*row)
    return grid


def _member(member: Member, does: str) -> Text:
    if not member.is_up:
        return Text.assemble(("✗ ", "bold red"), (member.name, "bold red"), ("  dead", "red"))
    return Text.assemble(("● ", "green"), (member.name, "bold"), (f"  {does}", "dim"))


def _partitions(owned: tuple[int, ...]) -> str:
    return f"partitions {' '.join(map(str, owned))}" if owned else "no partitions"
