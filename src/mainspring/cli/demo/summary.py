"""The end of the demo: what was expected, what came, how long each recovery took; for people and for programs."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mainspring.cli.demo.audit import Proof
from mainspring.cli.demo.director import Kill
from mainspring.cli.demo.next_steps import next_steps
from mainspring.cli.demo.plan import Expected, Planned
from mainspring.cli.demo.screen import late_text
from mainspring.cli.demo.story import Attempt
from mainspring.cli.demo.verdict import Verdict
from mainspring.cli.demo.workplace import Workplace
from mainspring.cli.durations import format_duration
from mainspring.cli.output import escape
from mainspring.cli.show import STATUS_STYLES, plural

__all__ = ["Outcome", "print_plan", "print_summary"]

_SHOWN = 10
_NUMBERS = {"NUMBER", "AGAIN", "LATE"}
_RIGHT, _WRONG = ("✓ ", "bold green"), ("✗ ", "bold red")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Everything about a run."""

    plan: tuple[Planned, ...]
    kills: tuple[Kill, ...]
    proof: Proof
    directory: Path
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The run as JSON has it."""
        proof = self.proof
        return {
            "ok": proof.is_right,
            "seconds": round(self.seconds, 1),
            "directory": str(self.directory),
            "kills": [
                {"name": kill.name, "pid": kill.pid, "hit": kill.hit, "recovered_ms": kill.recovered_ms}
                for kill in self.kills
            ],
            "lateness_ms": _lateness(proof.verdicts),
            "jobs": [_job_json(verdict) for verdict in proof.verdicts],
            "problems": list(proof.problems),
            "verify": proof.report.to_json(),
        }


def print_plan(console: Console, plan: tuple[Planned, ...], path: Path) -> None:
    """What will be submitted, and how it must end."""
    table = _table("WILL BE SUBMITTED", "NUMBER", "MUST END")
    for planned in _groups(plan).values():
        table.add_row(planned[0].kind.label, str(len(planned)), _expected_text(planned[0].expected))
    console.print(table)
    console.print(f"[dim]Written down, job by job, in {escape(path)}[/]\n", soft_wrap=True)


def print_summary(console: Console, outcome: Outcome, place: Workplace) -> None:
    """The result, and what to do next."""
    console.print()
    console.print(_kinds(outcome.proof.verdicts))
    console.print()
    for line in (*_proof_lines(outcome), *_kill_lines(outcome.kills), _lateness_line(outcome.proof.verdicts)):
        console.print(line, soft_wrap=not console.is_terminal)
    console.print()
    console.print(f"[dim]took[/]           {format_duration(outcome.seconds)}")
    console.print(Text.assemble(("run directory  ", "dim"), str(outcome.directory)), soft_wrap=True)
    for index, (command, why) in enumerate(next_steps(place)):
        label = "try next" if index == 0 else ""
        console.print(Text.assemble((f"{label:<15}", "dim"), command, (f"  # {why}", "dim")), soft_wrap=True)


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for head in heads:
        table.add_column(head, no_wrap=True, justify="right" if head in _NUMBERS else "left")
    return table


def _groups(plan: Sequence[Planned]) -> dict[str, list[Planned]]:
    groups: dict[str, list[Planned]] = {}
    for planned in plan:
        groups.setdefault(planned.kind.label, []).append(planned)
    return groups


def _expected_text(expected: Expected) -> Text:
    name = expected.status.name
    many = {0: "without a start", 1: ""}.get(expected.attempts, f"after {expected.attempts} attempts")
    return Text.assemble((name, STATUS_STYLES[name]), f" {many}".rstrip())


def _kinds(verdicts: Sequence[Verdict]) -> Table:
    """Each kind: what was expected and what came, how many jobs ran again because of a kill, the worst lateness."""
    table = _table("JOBS", "EXPECTED", "ACTUAL", "AGAIN", "LATE")
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.planned.kind.label, []).append(verdict)
    for label, group in groups.items():
        stories = [verdict.story for verdict in group if verdict.story is not None]
        late = [ms for story in stories if (ms := story.worst_late_ms) is not None]
        again = sum(story.lost > 0 for story in stories)
        table.add_row(
            label,
            _counts([verdict.planned.expected.status.name for verdict in group]),
            _actual(group),
            Text(str(again or ""), style="yellow"),
            late_text(max(late, default=None)),
        )
    return table


def _actual(group: Sequence[Verdict]) -> Text:
    """What came: with a tick when each job is as it must be."""
    right = all(verdict.is_right for verdict in group)
    found = _counts([v.story.status.name if v.story is not None else "ABSENT" for v in group])
    return Text.assemble(_RIGHT if right else _WRONG, found)


def _counts(names: Sequence[str]) -> Text:
    return Text(" ").join(
        Text.assemble(f"{count:>2} ", (name, STATUS_STYLES.get(name, "bold red")))
        for name, count in Counter(names).items()
    )


def _proof_lines(outcome: Outcome) -> list[Text]:
    proof, report = outcome.proof, outcome.proof.report
    right = sum(verdict.is_right for verdict in proof.verdicts)
    told = f"{right} of {len(proof.verdicts)} jobs ended as written down beforehand, by the log, id by id"
    faults = sum(finding.count for finding in report.findings)
    audited = f"log verify: {report.records_total} records, {plural(faults, 'fault') if faults else 'no fault'}"
    equal = f"{report.table_rows} rows of the tables and {report.view_rows} of the view equal the fold of the log"
    wrong = [f"{v.planned.job_id} {'; '.join(v.differences)}" for v in proof.verdicts if not v.is_right]
    return [
        _line(told, is_right=not wrong),
        *(Text(f"    {line}", style="red") for line in wrong[:_SHOWN]),
        _line(audited, is_right=report.ok),
        *(Text(f"    {finding}", style="red") for finding in report.findings[:_SHOWN]),
        *([_line(equal, is_right=True)] if report.ok else []),
        *(_line(problem, is_right=False) for problem in proof.problems),
    ]


def _line(text: str, *, is_right: bool) -> Text:
    return Text.assemble(_RIGHT if is_right else _WRONG, text)


def _kill_lines(kills: Sequence[Kill]) -> list[Text]:
    return [
        Text.assemble(
            _RIGHT,
            ("kill -9 ", "bold red"),
            f"{kill.name} with {kill.hit}: went on elsewhere after ",
            (format_duration(kill.recovered_ms / 1000), "bold"),
            (f" ({kill.noticed})", "dim"),
        )
        for kill in kills
    ]


def _lateness_line(verdicts: Sequence[Verdict]) -> Text:
    late = _lateness(verdicts)
    return Text.assemble(
        _RIGHT,
        f"{late['starts']} starts: half within {format_duration(late['p50'] / 1000)} of their time, "
        f"the latest {format_duration(late['max'] / 1000)}",
    )


def _lateness(verdicts: Sequence[Verdict]) -> dict[str, int]:
    late = [attempt.late_ms for attempt in _attempts(verdicts)]
    return {"starts": len(late), "p50": round(statistics.median(late or [0])), "max": max(late, default=0)}


def _attempts(verdicts: Sequence[Verdict]) -> list[Attempt]:
    return [attempt for verdict in verdicts if verdict.story is not None for attempt in verdict.story.attempts]


def _job_json(verdict: Verdict) -> dict[str, Any]:
    story = verdict.story
    return {
        "job_id": verdict.planned.job_id,
        "right": verdict.is_right,
        "differences": list(verdict.differences),
        "expected": verdict.planned.expected.status.name,
        "actual": None if story is None else story.status.name,
        "attempts": 0 if story is None else len(story.attempts),
        "lost": 0 if story is None else story.lost,
        "late_ms": None if story is None else story.worst_late_ms,
        "worker_id": None if story is None else story.worker_id or None,
    }
