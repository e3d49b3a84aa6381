"""Figures: lateness, goals, CPU time, bytes of the log."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.cli.bench import usage
from mainspring.cli.bench.lateness import histogram, seconds_of_minute
from mainspring.cli.bench.report import Figure, by_second, lateness_of
from mainspring.cli.bench.usage import Meter, Used, cpu_s, log_bytes, seconds_of

BUSY = "import time\nwhile time.process_time() < 0.2: pass\nprint('done', flush=True)\ninput()"
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])"


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_lateness_is_ordered_and_every_figure_is_one_of_the_jobs(late_ns: list[int]) -> None:
    late = lateness_of(late_ns)

    assert late.p50_ms <= late.p99_ms <= late.max_ms
    told = {round(each / 1e6, 2) for each in late_ns}
    assert {late.first_ms, late.p50_ms, late.p99_ms, late.max_ms} <= told
    assert late.first_ms == round(late_ns[0] / 1e6, 2)
    assert late.max_ms == max(told)


def test_percentiles_of_a_hundred_jobs_are_the_known_ones() -> None:
    late = lateness_of([ms * 1_000_000 for ms in range(1, 101)])

    assert (late.first_ms, late.p50_ms, late.p99_ms, late.max_ms) == (1.0, 51.0, 100.0, 100.0)


def test_lateness_of_no_job_is_an_error() -> None:
    with pytest.raises(ValueError, match="no job"):
        lateness_of([])


@given(st.lists(st.integers(-(10**9), 10**11)))
def test_each_job_is_in_one_second_of_a_drain_and_in_one_bar_of_a_histogram(late_ns: list[int]) -> None:
    assert sum(by_second(late_ns)) == len(late_ns)
    assert sum(bar["jobs"] for bar in histogram(late_ns)) == len(late_ns)


def test_a_drain_and_a_histogram_count_where_a_job_belongs() -> None:
    # Given jobs that were so many milliseconds late,
    late_ns = [ms * 1_000_000 for ms in (0, 5, 6, 999, 1_000, 2_500, 70_000)]

    # then each is in its second and under its bound, which it may just meet; the last bar has what is beyond all.
    assert by_second(late_ns)[:3] == [4, 1, 1]
    assert by_second(late_ns)[70] == 1
    bars = {bar["up_to_ms"]: bar["jobs"] for bar in histogram(late_ns)}
    assert (bars[5], bars[10], bars[1_000], bars[5_000], bars[None]) == (2, 1, 2, 1, 1)


def test_lateness_by_second_of_the_minute_gathers_the_same_second_of_each_minute() -> None:
    # Given jobs at second 59, at second 0 of the next minute, and at second 59 once more,
    due_ns = [second * 10**9 for second in (59, 60, 119)]

    # when their lateness is told by second,
    told = seconds_of_minute(due_ns, [1_000_000, 7_000_000, 3_000_000])

    # then those of one second of the minute are together.
    assert [(each["second"], each["jobs"], each["max_ms"]) for each in told] == [(0, 1, 7.0), (59, 2, 3.0)]


@pytest.mark.parametrize(
    ("value", "goal", "at_least", "met"),
    [
        (199.0, 200.0, False, True),
        (200.0, 200.0, False, True),
        (200.1, 200.0, False, False),
        (80.0, 80.0, True, True),
        (79.9, 80.0, True, False),
        (None, 200.0, False, None),
        (1.0, None, False, None),
    ],
)
def test_a_goal_is_met_up_to_its_bound(
    value: float | None, goal: float | None, at_least: bool, met: bool | None
) -> None:
    assert Figure(name="x", value=value, goal=goal, at_least=at_least).met is met


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:00:07", 7.0), ("01:02:03", 3723.0), ("2-00:00:01", 172_801.0), ("0:12.34", 12.34), ("75:00.50", 4500.5)],
)
def test_cpu_time_is_read_as_each_ps_writes_it(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("source", ["proc", "ps"])
def test_the_cpu_time_of_a_process_includes_that_of_its_children(
    source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given a process whose child has worked for 0.2 s and lives,
    if source == "ps":
        monkeypatch.setattr(usage, "_PROC", tmp_path)
        worked_s = 0.0  # some `ps` tell whole seconds only
    else:
        worked_s = 0.15
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "done\n"

        # when it is asked for, then the child's time is in it.
        used_s = cpu_s(parent.pid)
        parent.communicate("\n")

    assert used_s is not None
    assert used_s >= worked_s


def test_a_process_that_is_gone_has_no_cpu_time() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()

    assert cpu_s(gone.pid) is None
    assert set(Meter({"gone": gone.pid}).read().cpu_s) == {"client"}


def test_cost_per_job_and_share_of_a_core_follow_from_cpu_and_wall_time() -> None:
    used = Used({"scheduler": 0.5, "client": 0.25}, 2.0)

    assert used.per_job_us(10_000) == {"scheduler": 50.0, "client": 25.0, "sum": 75.0}
    assert used.percent("scheduler") == 25.0
    assert used.percent("broker") is None
    assert used.percents() == {"scheduler": 25.0, "client": 12.5}


def test_the_bytes_of_a_log_are_told_by_topic_without_the_prefix(tmp_path: Path) -> None:
    # Given the directory of a node with two partitions of ours, one of others, an index and a file,
    for name, size in {"b.events-0": 10, "b.events-1": 5, "b.work.default.low-0": 7, "other-0": 100}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000000.log").write_bytes(b"x" * size)
        (tmp_path / name / "00000000000000000000.index").write_bytes(b"x" * 1_000)
    (tmp_path / "b.meta-1").write_text("no directory")

    # then only the logs of ours count.
    assert log_bytes(tmp_path, "b.") == {"events": 15, "work.default.low": 7}
