"""The plots of the performance page: drawn from reports, the same each time, for light and dark pages."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from benchmarks.page import PAGE, with_table
from benchmarks.plots import DIRECTORY, draw

SVG = "{http://www.w3.org/2000/svg}"
MEASURED = {"layout": {"load_before": 1.5}, "machine": {"cores": 2}}


def write(directory: Path, name: str, **figures: Any) -> None:
    report = {"bench": name.partition("-")[0], "goals": []} | figures | MEASURED
    (directory / f"{name}.json").write_text(json.dumps(report), encoding="utf-8")


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """A directory with a report of each kind, of which two are of restarts."""
    limits = {"raw_produce_per_s": 200_000, "raw_consume_per_s": 600_000, "raw_transaction_loop_per_s": 170_000}
    write(tmp_path, "throughput", jobs=1_000, jobs_per_s=5_432, **limits)
    write(tmp_path, "herd", jobs=1_000, jobs_per_s=400, starts_by_second=[300, 500, 200])
    seconds = [{"second": second, "p50_ms": 20.0, "p99_ms": 90.0, "max_ms": 120.0} for second in (0, 1)]
    bars = [{"up_to_ms": 20, "jobs": 75}, {"up_to_ms": 250, "jobs": 25}, {"up_to_ms": None, "jobs": 0}]
    goals = [{"name": "late, p50", "value": 31.0, "unit": "ms", "goal": 30.0, "at_least": False, "met": False}]
    rates = {"jobs": 100, "rate_per_s": 50, "seconds": 2}
    write(tmp_path, "lateness", **rates, by_second_of_minute=seconds, histogram=bars, goals=goals)
    for jobs in (1_000, 20_000):
        ready_s = {"graceful": 1.1, "killed": 1.7, "changelog": 3.3}
        changelog = {"changelog_records": 2 * jobs, "changelog_raw_per_s": 10_000}
        write(
            tmp_path,
            f"restart-{jobs}",
            jobs=jobs,
            ready_s=ready_s,
            takeover_s=8.8,
            standby={"takeover_s": 4.4},
            **changelog,
        )
    write(tmp_path, "pending-1000", jobs=1_000, empty_mib=60.0, opened_mib=88.0, submitted_mib=99.0)
    return tmp_path


def texts(svg: bytes) -> str:
    return "\n".join(text for each in ET.fromstring(svg).iter() if (text := each.text))  # noqa: S314 - our own


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("throughput.svg", ["5,432", "170,000", "200,000", "600,000", "limit: consume"]),
        ("herd.svg", ["1,000 jobs due at one instant", "end-to-end rate of the same run", "the goal"]),
        ("lateness.svg", ["at 50 starts a second", "75", "25", "250"]),
        ("lateness-by-second.svg", ["p99", "goal of p50"]),
        ("restart.svg", ["1,000", "20,000", "after kill -9", "8.8", "4.4", "limit: bare read of the changelog"]),
        ("pending.svg", ["88", "99", "MiB"]),
    ],
)
def test_a_plot_tells_its_figures_beside_the_limit_and_follows_the_page(
    reports: Path, name: str, told: list[str]
) -> None:
    # When the reports are drawn,
    svg = draw(reports)[name]

    # then the plot tells what was measured and what bounds it,
    text = texts(svg)
    assert [word for word in told if word not in text] == []
    # and it has colours for light and dark pages, and nothing that runs.
    assert "prefers-color-scheme:dark" in text
    assert not list(ET.fromstring(svg).iter(f"{SVG}script"))  # noqa: S314 - our own


def test_every_plot_tells_on_what_machine_it_was_measured_and_what_else_that_had_to_do(reports: Path) -> None:
    plots = draw(reports)

    assert len(plots) == 6
    assert [name for name, svg in plots.items() if "2 cores, load 1.5" not in texts(svg)] == []


def test_the_last_part_of_a_second_is_no_low_rate(tmp_path: Path) -> None:
    # Given herds of which the last starts took less than a second, so that their number says nothing of the rate,
    def drawn(*starts: int) -> bytes:
        write(tmp_path, "herd", jobs=1_000, jobs_per_s=400, starts_by_second=starts)
        return draw(tmp_path)["herd.svg"]

    # when they are drawn, then whole seconds make the line, and those last ones do not.
    assert drawn(300, 500, 200) == drawn(300, 500, 7)
    assert drawn(300, 500, 200) != drawn(300, 400, 200)


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    assert draw(tmp_path) == {}


def test_the_table_tells_each_figure_beside_its_goal_and_marks_what_was_missed(reports: Path) -> None:
    # Given a page with something between its marks, when the table of the reports is put in,
    page = "before\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nafter\n"
    told = with_table(page, reports)

    # then the figure stands beside its goal and the load, and the rest of the page is as it was.
    assert "| lateness, 100 jobs | late, p50 | 31 ms ✗ | ≤ 30 ms | 1.5 |\n" in told
    assert told.startswith("before\n")
    assert told.endswith("<!-- figures: end -->\nafter\n")
    assert "old" not in told
    assert with_table(told, reports) == told


def test_a_page_without_marks_is_refused(reports: Path) -> None:
    with pytest.raises(ValueError, match="figures: begin"):
        with_table("no marks", reports)


def test_the_page_shows_the_reports_beside_it() -> None:
    # Given the reports that the page was made with, when its plots and its table are made again,
    plots, page = draw(DIRECTORY), PAGE.read_text(encoding="utf-8")

    # then the same bytes come out: nobody has touched a figure by hand,
    assert {name: (DIRECTORY / name).read_bytes() for name in plots} == plots
    assert {path.name for path in DIRECTORY.glob("*.svg")} == set(plots)
    assert with_table(page, DIRECTORY) == page
    # and the page shows every plot.
    assert plots
    assert [name for name in plots if f"(performance/{name})" not in page] == []
