"""What a benchmark found: figures for programs, and a table with the goals for people."""

import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mainspring.cli.bench.limits import Limits
from mainspring.cli.output import Column, Output, note, print_json, print_table

__all__ = ["Figure", "Lateness", "Report", "by_second", "lateness_of", "show"]

_PLAIN_FROM = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. `goal` is a bound: from above, or from below where `at_least`."""

    name: str
    value: float | None
    unit: str = ""
    goal: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is none, or nothing was measured."""
        if self.goal is None or self.value is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """How late jobs were, in milliseconds."""

    first_ms: float
    p50_ms: float
    p99_ms: float
    max_ms: float


def lateness_of(late_ns: Sequence[int]) -> Lateness:
    """The lateness of jobs in the order in which they were due; raises ValueError for none."""
    if not late_ns:
        raise ValueError("no job was measured")
    ordered = sorted(late_ns)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6, 2)

    return Lateness(first_ms=round(late_ns[0] / 1e6, 2), p50_ms=at(0.5), p99_ms=at(0.99), max_ms=at(1.0))


def by_second(late_ns: Sequence[int]) -> list[int]:
    """How many jobs were from 0 up to 1 s late, how many up to 2 s, and so on to the last; an early one counts as 0."""
    counts = Counter(max(0, each) // 1_000_000_000 for each in late_ns)
    return [counts[second] for second in range(max(counts, default=-1) + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that one benchmark found. `data` goes into the JSON, `figures` into the table."""

    bench: str
    what: str
    """What was run, a sentence."""
    data: Mapping[str, Any]
    figures: Sequence[Figure]
    limits: Limits
    table: Sequence[Sequence[Any]] = ()
    """Another table for people, its head first; what it says is in `data`, too."""

    def as_json(self, layout: Mapping[str, Any]) -> dict[str, Any]:
        """The whole report as plain JSON types."""
        goals = [asdict(each) | {"met": each.met} for each in self.figures if each.goal is not None]
        return {
            "bench": self.bench,
            "what": self.what,
            **self.data,
            **asdict(self.limits),
            "goals": goals,
            "layout": dict(layout),
            "machine": machine(),
        }


def machine() -> dict[str, Any]:
    """On what it was measured."""
    import confluent_kafka

    from mainspring.schemas.native import IS_BUILT

    return {
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "librdkafka": confluent_kafka.libversion()[0],
        "codec": "C" if IS_BUILT else "Python",
    }


def show(report: Report, output: Output, layout: Mapping[str, Any]) -> None:
    """Prints a report on stdout."""
    if output is Output.JSON:
        print_json(report.as_json(layout))
        return
    told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in layout.items())
    note(f"[bold]{report.bench}[/]  {report.what}\n[dim]{told}; {os.cpu_count()} cores[/]\n")
    columns = (
        Column(head="FIGURE"),
        Column(head="MEASURED", right=True),
        Column(head="GOAL", right=True),
        Column(head=""),
    )
    print_table(columns, [_row(each) for each in (*report.figures, *_limit_figures(report.limits))])
    if report.table:
        heads, *rows = report.table
        note("")
        print_table([Column(head=head, right=at < len(heads) - 1) for at, head in enumerate(heads)], rows)


def _limit_figures(limits: Limits) -> Sequence[Figure]:
    return (
        Figure(name="limit: raw idempotent produce", value=limits.raw_produce_per_s, unit="records/s"),
        Figure(name="limit: raw consume", value=limits.raw_consume_per_s, unit="records/s"),
        Figure(name="limit: bare transactional loop", value=limits.raw_transaction_loop_per_s, unit="records/s"),
    )


def _row(figure: Figure) -> Sequence[Any]:
    from rich.text import Text

    measured = "-" if figure.value is None else f"{_number(figure.value)} {figure.unit}"
    if figure.goal is None:
        return figure.name, measured, "", ""
    goal = f"{'≥' if figure.at_least else '≤'} {_number(figure.goal)} {figure.unit}"
    if figure.met is None:
        return figure.name, measured, goal, ""
    return figure.name, measured, goal, Text("✓", style="green") if figure.met else Text("✗", style="bold red")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _PLAIN_FROM or value == int(value) else f"{value:,.1f}"
