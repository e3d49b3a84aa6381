"""The plots of docs/performance.md, drawn from what the benchmarks printed as JSON.

Of `throughput.json`, `herd.json`, `lateness.json`, `restart-<jobs>.json` and `pending-<jobs>.json` as far as they are
there. The same JSON gives the same bytes. The plots have no background, and follow the reader's choice of a light or a
dark page.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pygal
from pygal.style import Style

__all__ = ["DIRECTORY", "draw", "reports_in"]

# pygal adds a finder of modules that knows the old protocol only: every import of the process would warn of it.
sys.meta_path[:] = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]

DIRECTORY = Path(__file__).parents[1] / "docs" / "performance"
REPORTS = ("throughput", "herd", "lateness")
_INK, _FAINT = "var(--ink)", "var(--faint)"
_COLORS = ("var(--blue)", "var(--orange)", "var(--green)", "var(--purple)", "var(--pink)", "var(--grey)")
_CSS = """inline:
:root { --ink: #1f2328; --faint: #8c959f; --blue: #0969da; --orange: #bc4c00; --green: #1a7f37; --purple: #8250df;
  --pink: #bf3989; --grey: #6e7781 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #6e7681; --blue: #58a6ff; --orange: #f0883e;
  --green: #3fb950; --purple: #bc8cff; --pink: #f778ba; --grey: #8b949e } }
.reactive { stroke-width: 2; fill-opacity: .85 }
.guide.line { stroke-opacity: .4 }
"""
_STYLE = Style(
    background="transparent",
    plot_background="transparent",
    foreground=_INK,
    foreground_strong=_INK,
    foreground_subtle=_FAINT,
    guide_stroke_color=_FAINT,
    major_guide_stroke_color=_FAINT,
    colors=_COLORS,
    font_family="system-ui, 'DejaVu Sans', sans-serif",
    title_font_size=15,
    legend_font_size=13,
    label_font_size=12,
    major_label_font_size=12,
    value_font_size=12,
    value_colors=(_INK,) * len(_COLORS),
)
_DASHED = {"dasharray": "6, 5", "width": 2}
_ALWAYS = {
    "style": _STYLE,
    "css": ["file://style.css", "file://graph.css", _CSS],
    "js": (),
    "no_prefix": True,
    "width": 860,
    "legend_at_bottom": True,
    "truncate_legend": -1,
    "print_values_position": "top",
    "value_formatter": lambda value: "" if value is None else f"{value:,.4g}" if value < 100 else f"{value:,.0f}",  # noqa: PLR2004 - from there on no digits behind the point
}


def reports_in(directory: Path) -> list[Mapping[str, Any]]:
    """The reports in a directory: the lone ones first, then restarts and pending jobs by their size."""
    lone = [_read(path) for name in REPORTS if (path := directory / f"{name}.json").exists()]
    restarts, pending = _by_jobs(directory.glob("restart-*.json")), _by_jobs(directory.glob("pending-*.json"))
    return [*lone, *restarts.values(), *pending.values()]


def draw(directory: Path) -> dict[str, bytes]:
    """The plots of the reports in a directory, by file name."""
    reports = reports_in(directory)
    found = {report["bench"]: report for report in reports}
    restarts = {report["jobs"]: report for report in reports if report["bench"] == "restart"}
    pending = {report["jobs"]: report for report in reports if report["bench"] == "pending"}
    plots: dict[str, Any] = {}
    if "throughput" in found:
        plots["throughput.svg"] = _throughput(found["throughput"])
    if "herd" in found:
        plots["herd.svg"] = _herd(found["herd"])
    if "lateness" in found:
        plots["lateness.svg"] = _lateness(found["lateness"])
        plots["lateness-by-second.svg"] = _lateness_by_second(found["lateness"])
    if restarts:
        plots["restart.svg"] = _restart(restarts)
    if pending:
        plots["pending.svg"] = _pending(pending)
    return {name: _bytes(plot) for name, plot in plots.items()}


def _throughput(report: Mapping[str, Any]) -> Any:
    chart = pygal.Bar(
        title=f"{report['jobs']:,} no-op jobs from submit to result, {_under(report)}",
        y_title="per second",
        print_values=True,
        height=340,
        **_ALWAYS,
    )
    chart.add("jobs, thirteen records each", report["jobs_per_s"])
    for name, figure in (
        ("limit: transactional loop", "raw_transaction_loop_per_s"),
        ("limit: idempotent produce", "raw_produce_per_s"),
        ("limit: consume", "raw_consume_per_s"),
    ):
        chart.add(f"{name}, records", report[figure])
    return chart


def _herd(report: Mapping[str, Any]) -> Any:
    starts: Sequence[int] = report["starts_by_second"]
    rate = report["jobs_per_s"]
    chart = pygal.XY(
        title=f"{report['jobs']:,} jobs due at one instant, {_under(report)}",
        x_title="seconds after that instant",
        y_title="starts per second",
        show_dots=False,
        include_x_axis=True,
        height=400,
        **_ALWAYS,
    )
    # The last second is no whole one.
    chart.add("starts", [(second + 0.5, count) for second, count in enumerate(starts[:-1] or starts)])
    for name, height in (("end-to-end rate of the same run", rate), ("80 % of it, the goal", 0.8 * rate)):
        chart.add(name, [(0, height), (len(starts), height)], stroke_style=_DASHED)
    return chart


def _lateness(report: Mapping[str, Any]) -> Any:
    bars = [(bar["up_to_ms"], bar["jobs"]) for bar in report["histogram"]]
    last = max((at for at, (_, jobs) in enumerate(bars) if jobs), default=0)
    shown = bars[: last + 1]
    chart = pygal.Bar(
        title=f"Lateness at {report['rate_per_s']:,} starts a second for {report['seconds']} s, {_under(report)}",
        x_title="milliseconds from due to start, up to",
        y_title="% of the jobs",
        show_legend=False,
        print_values=True,
        height=380,
        **_ALWAYS,
    )
    chart.x_labels = ["more" if bound is None else f"{bound:,}" for bound, _ in shown]
    chart.add("jobs", [round(100 * jobs / report["jobs"], 2) for _, jobs in shown])
    return chart


def _lateness_by_second(report: Mapping[str, Any]) -> Any:
    seconds = report["by_second_of_minute"]
    goals = {goal["name"]: goal["goal"] for goal in report["goals"]}
    chart = pygal.XY(
        title=f"The same by the second of the minute, {_under(report)}",
        x_title="second of the minute in which they were due",
        y_title="ms late",
        dots_size=2,
        include_x_axis=True,
        height=400,
        **_ALWAYS,
    )
    for name in ("p50", "p99", "max"):
        chart.add(name, [(each["second"], each[f"{name}_ms"]) for each in seconds])
    for name, goal in goals.items():
        chart.add(f"goal of {name.rpartition(' ')[2]}", [(0, goal), (59, goal)], show_dots=False, stroke_style=_DASHED)
    return chart


def _restart(reports: Mapping[int, Mapping[str, Any]]) -> Any:
    chart = pygal.Bar(
        title=f"Until every partition decides again, {_under(*reports.values())}",
        x_title="pending jobs",
        y_title="seconds",
        print_values=True,
        height=420,
        **_ALWAYS,
    )
    each = list(reports.values())
    chart.x_labels = [f"{jobs:,}" for jobs in reports]
    chart.add("after SIGTERM", [one["ready_s"]["graceful"] for one in each])
    chart.add("after kill -9", [one["ready_s"]["killed"] for one in each])
    chart.add("changelog alone", [one["ready_s"]["changelog"] for one in each])
    chart.add("a second one takes over", [one["takeover_s"] for one in each])
    if all("standby" in one for one in each):
        chart.add("a warm standby does", [one["standby"]["takeover_s"] for one in each])
    raw = [round(one["changelog_records"] / one["changelog_raw_per_s"], 2) for one in each]
    chart.add("limit: bare read of the changelog", raw)
    return chart


def _pending(reports: Mapping[int, Mapping[str, Any]]) -> Any:
    chart = pygal.Bar(
        title=f"Resident memory of a scheduler process, {_under(*reports.values())}",
        x_title="pending jobs",
        y_title="MiB",
        print_values=True,
        height=380,
        **_ALWAYS,
    )
    each = list(reports.values())
    chart.x_labels = [f"{jobs:,}" for jobs in reports]
    chart.add("before anything", [one["empty_mib"] for one in each])
    chart.add("after a start with them", [one["opened_mib"] for one in each])
    chart.add("after more submits", [one["submitted_mib"] for one in each])
    return chart


def _under(*reports: Mapping[str, Any]) -> str:
    """The machine, and what else it had to do."""
    layouts = [report["layout"] for report in reports]
    loads = [layout["load_before"] for layout in layouts]
    load = f"{min(loads):g}" if min(loads) == max(loads) else f"{min(loads):g} to {max(loads):g}"
    return f"{reports[0]['machine']['cores']} cores, load {load}"


def _by_jobs(paths: Iterable[Path]) -> dict[int, Mapping[str, Any]]:
    reports = [_read(path) for path in paths]
    return {report["jobs"]: report for report in sorted(reports, key=lambda report: int(report["jobs"]))}


def _read(path: Path) -> Mapping[str, Any]:
    report: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def _bytes(chart: Any) -> bytes:
    """The plot without the library's script, which a page that shows an image would not run, and without the date."""
    root = chart.render_tree()
    for parent in list(root.iter()):
        for child in list(parent):
            if not isinstance(child.tag, str) or child.tag.rpartition("}")[2] == "script":
                parent.remove(child)
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    text: bytes = ET.tostring(root, encoding="utf-8")
    return text + b"\n"
